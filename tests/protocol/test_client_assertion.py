"""How a client proves who it is, at PAR and at the token endpoint alike (Spec 5; RFC 7523 §3; D5, D8, D33, D49).

Where nothing is pushed, it is the token endpoint alone.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from joserfc.jwk import ECKey, OctKey

from corpid_dev.relying_party.jwt import public_members
from tests.protocol.deployment import ISSUER, PAR, TOKEN, other_key
from tests.protocol.expectations import EVERY
from tests.protocol.refusals import json_refusal
from tests.world.clients import rp_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from corpid_dev.relying_party.relying_party import RelyingParty
    from tests.protocol.provider import World

pytestmark = pytest.mark.generations(*EVERY)
CURVES = {"ES256": "P-256", "ES256K": "secp256k1", "ES384": "P-384", "ES512": "P-521"}


def ask(world: World, assertion: str, rp: RelyingParty | None = None, **headers: str) -> httpx.Response:
    """An otherwise honest request with this assertion: a push, or else a token request with a code of nobody's."""
    if world.interface.pushed:
        return world.push(rp, headers=headers, client_assertion=assertion, state="s")
    return world.redeem("no-code", rp, client_assertion=assertion)


def is_refused(world: World, answer: httpx.Response) -> str:
    return json_refusal(answer, 401, "invalid_client", state="s" if world.interface.pushed else None)


def is_accepted(world: World, answer: httpx.Response) -> None:
    """The client is who it says; the code of nobody's is looked for only then (Spec "The order of a request")."""
    if world.interface.pushed:
        assert answer.status_code == 201, answer.text
    else:
        json_refusal(answer, 400, "invalid_grant")


def refuse(world: World, assertion: str) -> None:
    """Refused at both endpoints; nothing is spent, neither the proof nor a code (Spec "The order of a request")."""
    proof = world.rp.proof("POST", PAR)
    with world.nothing_spent():
        is_refused(world, ask(world, assertion, DPoP=proof))
        json_refusal(world.redeem("no-code", client_assertion=assertion), 401, "invalid_client")
    is_accepted(world, ask(world, world.rp.assertion(), DPoP=proof))


def accept(world: World, assertion: str) -> None:
    is_accepted(world, ask(world, assertion))


def jwks(*keys: dict[str, Any], encryption: bool = True) -> str:
    return json.dumps({"keys": [*keys, *([rp_keys("rp-1").public()["keys"][1]] if encryption else [])]})


@pytest.mark.generations(*EVERY)
@pytest.mark.parametrize("claim", ["iss", "sub", "aud", "exp", "iat", "jti"])
@pytest.mark.parametrize("value", [None, "", [], {}, True, "rp-2"])
def test_every_claim_is_required_and_of_its_type(shared: World, claim: str, value: Any) -> None:
    """D8; Spec "Generations": FAPI2 does without iat, LEGACY without jti."""
    fine = [("jti", "rp-2"), *((name, None) for name in ("iat", "jti") if name not in shared.expected.assertion_claims)]
    (accept if (claim, value) in fine else refuse)(shared, shared.rp.assertion(**{claim: value}))


@pytest.mark.parametrize(
    "audience",
    [
        [ISSUER, PAR], [TOKEN], TOKEN, PAR, f"{ISSUER}/", ISSUER.upper(), "https://op.example:443", "op.example",
        "https://evil.example", {"x": ISSUER},
    ],
)  # fmt: skip
def test_the_audience_is_the_issuer_as_one_string(shared: World, audience: Any) -> None:
    """D8: FAPI 2.0 and rfc7523bis over RFC 9126 §2."""
    refuse(shared, shared.rp.assertion(aud=audience))


@pytest.mark.generations(*EVERY, differ=True)
def test_an_array_of_the_issuer_is_an_audience_in_legacy_alone(shared: World) -> None:
    """D8, D70."""
    (accept if shared.interface.name == "legacy" else refuse)(shared, shared.rp.assertion(aud=[ISSUER]))
    refuse(shared, shared.rp.assertion(aud=[ISSUER, TOKEN]))


@pytest.mark.generations(*EVERY)
@pytest.mark.parametrize(
    "claims",
    [
        lambda now, _: {"exp": now},
        lambda now, _: {"exp": now - 1, "iat": now - 60},
        lambda now, cap: {"iat": now, "exp": now + cap + 1},
        lambda now, cap: {"iat": now, "exp": now + cap + 0.5},
        lambda now, cap: {"iat": now - 100, "exp": now - 100 + cap + 1},
        lambda now, _: {"iat": now + 31, "exp": now + 60},
        lambda now, _: {"iat": now + 30.5, "exp": now + 60},
        lambda now, _: {"nbf": now + 31},
        lambda *_: {"exp": 2**53 + 2, "iat": 2**53},
        lambda *_: {"iat": -1},
        lambda now, _: {"nbf": str(now)},
        lambda *_: {"nbf": True},
    ],
)
def test_an_assertion_just_outside_its_time_is_refused(
    shared: World, claims: Callable[[float, int], dict[str, Any]]
) -> None:
    """D8: exp - iat at most 120 or 600 s, iat and nbf at most 30 s ahead; D33: NumericDate."""
    refuse(shared, shared.rp.assertion(**claims(shared.clock.now, shared.expected.assertion_seconds)))


@pytest.mark.generations(*EVERY)
@pytest.mark.parametrize(
    "claims",
    [
        lambda now, _: {"exp": now + 0.5},
        lambda now, cap: {"exp": now + 1, "iat": now + 1 - cap},
        lambda now, cap: {"iat": now, "exp": now + cap},
        lambda now, cap: {"iat": now + 30, "exp": now + 30 + cap},
        lambda now, _: {"nbf": now + 30},
        lambda *_: {"nbf": 0},
        lambda now, _: {"iat": now - 0.25},
    ],
)
def test_an_assertion_exactly_at_the_edge_of_its_time_is_taken(
    shared: World, claims: Callable[[float, int], dict[str, Any]]
) -> None:
    """D8."""
    accept(shared, shared.rp.assertion(**claims(shared.clock.now, shared.expected.assertion_seconds)))


@pytest.mark.parametrize("jti", ["x", "y" * 255, "\u00e9 \n"])
def test_a_jti_has_up_to_256_characters(shared: World, jti: str) -> None:
    """D33."""
    accept(shared, shared.rp.assertion(jti=jti))
    refuse(shared, shared.rp.assertion(jti="y" * 257))
    refuse(shared, shared.rp.assertion(jti=7))


def test_an_assertion_is_used_once_at_either_endpoint(world: World) -> None:
    """D8: jti single use; what is refused is spent for good, and what it accompanied is not."""
    code, assertion = world.code(), world.rp.assertion()
    accept(world, assertion)
    before = world.kinds()
    json_refusal(world.redeem(code, client_assertion=assertion), 401, "invalid_client")
    is_refused(world, ask(world, assertion))
    assert world.kinds() == sorted([*before, *["proof"] * (world.interface.bound + world.interface.proof_at_push)])
    assert world.redeem(code).status_code == 200


@pytest.mark.generations(*EVERY)
def test_a_jti_is_remembered_until_nobody_could_use_it_again(world: World) -> None:
    """D49: what was spent outlives its end."""
    now = world.clock.now
    end = now + world.expected.assertion_seconds
    assertion = world.rp.assertion(iat=now, exp=end)
    accept(world, assertion)
    for later in (end - 1, end - 0.1):
        world.clock.now = later
        assert "already used" in is_refused(world, ask(world, assertion))
    (kept,) = [row[4] for row in world.stored() if row[0] == "assertion"]
    assert kept >= (end + 300) * 1000


@pytest.mark.generations("legacy")
def test_an_assertion_without_jti_may_come_again(world: World) -> None:
    """Spec "Generations": LEGACY, single use if present."""
    code, assertion = world.code(), world.rp.assertion(jti=None)
    accept(world, assertion)
    assert world.redeem(code, client_assertion=assertion).status_code == 200
    assert "assertion" not in world.kinds()


def test_the_same_jti_of_another_client_is_another(world: World) -> None:
    """docs/architecture.md, "One-time use": keys name the client."""
    other = world.party("rp-2")
    accept(world, world.rp.assertion(jti="one"))
    is_accepted(world, ask(world, other.assertion(jti="one"), other))


@pytest.mark.parametrize(
    "header",
    [
        {"crit": ["exp"]}, {"crit": []}, {"zip": "DEF"}, {"b64": False}, {"b64": True}, {"jku": "https://evil.example/k"},
        {"x5u": "https://evil.example/c"}, {"typ": "dpop+jwt"}, {"typ": "at+jwt"}, {"typ": ""}, {"typ": 1}, {"alg": None},
        {"alg": "none"}, {"alg": "HS256"}, {"alg": "RS256"}, {"alg": "PS256"}, {"alg": "EdDSA"}, {"alg": "es256"},
        {"alg": "ES384"}, {"alg": "ES256K"}, {"alg": 1}, {"alg": ["ES256"]}, {"kid": "unknown"}, {"kid": ""}, {"kid": 1},
    ],
)  # fmt: skip
def test_a_header_that_is_not_as_it_should_be_is_refused(shared: World, header: dict[str, Any]) -> None:
    """D8: alg on the list and the key's, typ, kid; D33; crit, zip, b64, jku and x5u refused."""
    refuse(shared, shared.rp.assertion(header=header))


@pytest.mark.parametrize(
    "header",
    [
        {"typ": None},
        {"typ": "jwt"},
        {"typ": "client-authentication+jwt"},
        {"kid": None},
        {"x": 1},
        {"jwk": {"kty": "EC"}},
    ],
)
def test_other_proper_headers_are_taken(shared: World, header: dict[str, Any]) -> None:
    """D8; a jwk in the header is not the registered key and is never looked at."""
    accept(shared, shared.rp.assertion(header=header))


def test_a_key_in_the_header_authenticates_nobody(shared: World) -> None:
    """D8: only registered keys count."""
    key = other_key()
    refuse(shared, shared.rp.assertion(header={"jwk": public_members(key), "kid": None}, key=key))


def test_a_symmetric_signature_made_with_the_public_key_is_refused(shared: World) -> None:
    """SECURITY.md: algorithms come from registered keys."""
    secret = OctKey.import_key(json.dumps(public_members(rp_keys("rp-1").signing)))
    refuse(shared, shared.rp.assertion(header={"alg": "HS256"}, key=secret))


def test_the_keys_of_another_client_authenticate_only_that_client(shared: World) -> None:
    """D8: iss = sub = client_id, verified by that client's keys."""
    other = shared.party("rp-2")
    refuse(shared, shared.rp.assertion(key=rp_keys("rp-2").signing))
    refuse(shared, shared.rp.assertion(key=rp_keys("rp-2").signing, header={"kid": None}))
    refuse(shared, other.assertion())
    refuse(shared, shared.rp.assertion(sub="rp-2"))
    refuse(shared, shared.rp.assertion(iss="rp-2"))
    accept(shared, shared.rp.assertion())


@pytest.mark.generations(*EVERY)
@pytest.mark.parametrize("algorithm", CURVES)
@pytest.mark.parametrize("named", [True, False], ids=["with alg", "without alg"])
def test_every_algorithm_of_the_list_is_taken_from_a_key_of_its_curve(
    world: World, algorithm: str, named: bool
) -> None:
    """Spec 2.8, D8: a key without alg, its curve decides; Spec "Generations": FAPI2 takes ES256 alone."""
    key = other_key(CURVES[algorithm])
    world.registers(
        jwks=jwks({**public_members(key), "use": "sig", "kid": "k", **({"alg": algorithm} if named else {})})
    )
    taken = is_accepted if algorithm in world.expected.algorithms else is_refused
    taken(world, ask(world, world.rp.assertion(key=key, header={"alg": algorithm, "kid": "k"})))
    wrong = "ES384" if algorithm != "ES384" else "ES256"
    is_refused(world, ask(world, world.rp.assertion(key=key, header={"alg": wrong, "kid": "k"})))


@pytest.mark.parametrize("use", ["enc", None, "SIG", ""])
def test_a_key_that_is_not_for_signing_verifies_no_assertion(world: World, use: str | None) -> None:
    """D8: use must be sig."""
    world.registers(jwks=jwks({**public_members(other_key()), "use": use, "kid": "k", "alg": "ES256"}))
    is_refused(world, ask(world, world.rp.assertion(key=other_key(), header={"kid": "k"})))


def test_of_several_keys_with_one_kid_every_fitting_one_is_tried(world: World) -> None:
    """D8."""
    first, second = ECKey.generate_key("P-256"), ECKey.generate_key("P-256")
    world.registers(jwks=jwks(*({**public_members(key), "use": "sig", "kid": "same"} for key in (first, second))))
    for key in (first, second):
        accept(world, world.rp.assertion(key=key, header={"kid": "same"}))
    is_refused(world, ask(world, world.rp.assertion(key=other_key(), header={"kid": "same"})))


def test_without_kid_every_fitting_key_is_tried_and_with_one_only_that(world: World) -> None:
    """D8: kid names the key."""
    first, second = ECKey.generate_key("P-256"), ECKey.generate_key("P-256")
    keys = [{**public_members(first), "use": "sig", "kid": "one"}, {**public_members(second), "use": "sig"}]
    world.registers(jwks=jwks(*keys))
    for key in (first, second):
        accept(world, world.rp.assertion(key=key, header={"kid": None}))
    is_refused(world, ask(world, world.rp.assertion(key=second, header={"kid": "one"})))
