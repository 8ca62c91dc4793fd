"""How a client proves who it is, at PAR and at the token endpoint alike (Spec 5; RFC 7523 §3; D5, D8, D33, D49)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from joserfc.jwk import ECKey, OctKey

from corpid.sandbox.relying_party_keys import public
from tests.protocol.deployment import ISSUER, PAR, TOKEN, other_key, rp_keys
from tests.protocol.refusals import json_refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.protocol.provider import World

CURVES = {"ES256": "P-256", "ES256K": "secp256k1", "ES384": "P-384", "ES512": "P-521"}


def refuse(world: World, assertion: str) -> None:
    """Refused at both endpoints; nothing is spent, neither the proof nor a code (decisions "order")."""
    headers = {"DPoP": world.rp.proof("POST", PAR)}
    with world.nothing_spent():
        json_refusal(
            world.push(headers=headers, client_assertion=assertion, state="s"), 401, "invalid_client", state="s"
        )
        json_refusal(world.redeem("no-code", client_assertion=assertion), 401, "invalid_client")
    assert world.push(headers=headers).status_code == 201


def accept(world: World, assertion: str) -> None:
    answer = world.push(client_assertion=assertion)
    assert answer.status_code == 201, answer.text


def jwks(*keys: dict[str, Any], encryption: bool = True) -> str:
    return json.dumps({"keys": [*keys, *([rp_keys("rp-1").public()["keys"][1]] if encryption else [])]})


@pytest.mark.parametrize("claim", ["iss", "sub", "aud", "exp", "iat", "jti"])
@pytest.mark.parametrize("value", [None, "", [], {}, True, "rp-2"])
def test_every_claim_is_required_and_of_its_type(shared: World, claim: str, value: Any) -> None:
    """D8; decisions "Generations": CURRENT requires iat and jti."""
    if (claim, value) != ("jti", "rp-2"):
        refuse(shared, shared.rp.assertion(**{claim: value}))


@pytest.mark.parametrize(
    "audience",
    [
        [ISSUER], [ISSUER, TOKEN], TOKEN, PAR, f"{ISSUER}/", ISSUER.upper(), "https://op.example:443", "op.example",
        "https://evil.example", {"x": ISSUER},
    ],
)  # fmt: skip
def test_the_audience_is_the_issuer_as_one_string(shared: World, audience: Any) -> None:
    """D8: FAPI 2.0 and rfc7523bis over RFC 9126 §2."""
    refuse(shared, shared.rp.assertion(aud=audience))


@pytest.mark.parametrize(
    "claims",
    [
        lambda now: {"exp": now},
        lambda now: {"exp": now - 1, "iat": now - 60},
        lambda now: {"iat": now, "exp": now + 121},
        lambda now: {"iat": now, "exp": now + 120.5},
        lambda now: {"iat": now - 100, "exp": now + 21},
        lambda now: {"iat": now + 31, "exp": now + 60},
        lambda now: {"iat": now + 30.5, "exp": now + 60},
        lambda now: {"nbf": now + 31},
        lambda now: {"exp": 2**53 + 2, "iat": 2**53},
        lambda _: {"iat": -1},
        lambda now: {"nbf": str(now)},
        lambda _: {"nbf": True},
    ],
)
def test_an_assertion_just_outside_its_time_is_refused(
    shared: World, claims: Callable[[float], dict[str, Any]]
) -> None:
    """D8: exp - iat at most 120 s, iat and nbf at most 30 s ahead; D33: NumericDate."""
    refuse(shared, shared.rp.assertion(**claims(shared.clock.now)))


@pytest.mark.parametrize(
    "claims",
    [
        lambda now: {"exp": now + 0.5},
        lambda now: {"exp": now + 1, "iat": now - 119},
        lambda now: {"iat": now, "exp": now + 120},
        lambda now: {"iat": now + 30, "exp": now + 150},
        lambda now: {"nbf": now + 30},
        lambda _: {"nbf": 0},
        lambda now: {"iat": now - 0.25},
    ],
)
def test_an_assertion_exactly_at_the_edge_of_its_time_is_taken(
    shared: World, claims: Callable[[float], dict[str, Any]]
) -> None:
    """D8."""
    accept(shared, shared.rp.assertion(**claims(shared.clock.now)))


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
    json_refusal(world.push(client_assertion=assertion, state="s"), 401, "invalid_client", state="s")
    assert world.kinds() == sorted([*before, "proof", "proof"])
    assert world.redeem(code).status_code == 200


def test_a_jti_is_remembered_until_nobody_could_use_it_again(world: World) -> None:
    """D49: what was spent outlives its end."""
    now = world.clock.now
    assertion = world.rp.assertion(iat=now, exp=now + 120)
    accept(world, assertion)
    for later in (now + 119, now + 119.9):
        world.clock.now = later
        json_refusal(world.push(client_assertion=assertion, state="s"), 401, "invalid_client", state="s")
    (kept,) = [row[4] for row in world.stored() if row[0] == "assertion"]
    assert kept >= (now + 120 + 300) * 1000


def test_the_same_jti_of_another_client_is_another(world: World) -> None:
    """DESIGN "One-time means one statement": keys name the client."""
    other = world.party("rp-2")
    assert world.push(client_assertion=world.rp.assertion(jti="one")).status_code == 201
    assert world.push(other, client_assertion=other.assertion(jti="one")).status_code == 201


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
    refuse(shared, shared.rp.assertion(header={"jwk": public(key), "kid": None}, key=key))


def test_a_symmetric_signature_made_with_the_public_key_is_refused(shared: World) -> None:
    """DESIGN "Security": algorithms come from registered keys."""
    secret = OctKey.import_key(json.dumps(public(rp_keys("rp-1").signing)))
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


@pytest.mark.parametrize("algorithm", CURVES)
@pytest.mark.parametrize("named", [True, False], ids=["with alg", "without alg"])
def test_every_algorithm_of_the_list_is_taken_from_a_key_of_its_curve(
    world: World, algorithm: str, named: bool
) -> None:
    """Spec 2.8, D8: a key without alg, its curve decides."""
    key = other_key(CURVES[algorithm])
    world.registers(jwks=jwks({**public(key), "use": "sig", "kid": "k", **({"alg": algorithm} if named else {})}))
    accept(world, world.rp.assertion(key=key, header={"alg": algorithm, "kid": "k"}))
    wrong = "ES384" if algorithm != "ES384" else "ES256"
    answer = world.push(client_assertion=world.rp.assertion(key=key, header={"alg": wrong, "kid": "k"}), state="s")
    json_refusal(answer, 401, "invalid_client", state="s")


@pytest.mark.parametrize("use", ["enc", None, "SIG", ""])
def test_a_key_that_is_not_for_signing_verifies_no_assertion(world: World, use: str | None) -> None:
    """D8: use must be sig."""
    world.registers(jwks=jwks({**public(other_key()), "use": use, "kid": "k", "alg": "ES256"}))
    answer = world.push(client_assertion=world.rp.assertion(key=other_key(), header={"kid": "k"}), state="s")
    json_refusal(answer, 401, "invalid_client", state="s")


def test_of_several_keys_with_one_kid_every_fitting_one_is_tried(world: World) -> None:
    """D8."""
    first, second = ECKey.generate_key("P-256"), ECKey.generate_key("P-256")
    world.registers(jwks=jwks(*({**public(key), "use": "sig", "kid": "same"} for key in (first, second))))
    for key in (first, second):
        accept(world, world.rp.assertion(key=key, header={"kid": "same"}))
    answer = world.push(client_assertion=world.rp.assertion(key=other_key(), header={"kid": "same"}), state="s")
    json_refusal(answer, 401, "invalid_client", state="s")


def test_without_kid_every_fitting_key_is_tried_and_with_one_only_that(world: World) -> None:
    """D8: kid names the key."""
    first, second = ECKey.generate_key("P-256"), ECKey.generate_key("P-256")
    keys = [{**public(first), "use": "sig", "kid": "one"}, {**public(second), "use": "sig"}]
    world.registers(jwks=jwks(*keys))
    for key in (first, second):
        accept(world, world.rp.assertion(key=key, header={"kid": None}))
    answer = world.push(client_assertion=world.rp.assertion(key=second, header={"kid": "one"}), state="s")
    json_refusal(answer, 401, "invalid_client", state="s")
