"""What userinfo refuses, each with exactly one challenge (Spec 4.4, 7.4; RFC 9449 §7; D5, D6, D20, D24, D25, D50).

And authorization-info, where the rule is not about DPoP.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from corpid.jose import compact, key_ring
from corpid.jose.keys import ALGORITHMS as KNOWN
from corpid_dev.relying_party import jwt
from tests.protocol import directory
from tests.protocol.deployment import ISSUER, PAR, USERINFO, other_key
from tests.protocol.expectations import ANOTHER, EVERY, PUSHED
from tests.protocol.provider import World
from tests.protocol.refusals import json_refusal, not_cached, resource_refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.generations(*PUSHED)


@pytest.fixture(scope="module")
def holder(speaking: str) -> Iterator[World]:
    """A world whose relying party holds an access token that lives as long as the module's tests."""
    with World(generations=(speaking,)) as made:
        made.tokens()
        yield made


def token(world: World) -> str:
    tokens = world.rp.sign_in.tokens
    assert tokens is not None
    return tokens.access_token


def resource(world: World) -> str:
    """The URL of userinfo or authorization-info."""
    return USERINFO if world.interface.bound else f"{ISSUER}/authorization-info"


def proven(world: World, method: str = "GET", access_token: str | None = None) -> dict[str, Any]:
    """An honest proof for this token, where there are proofs."""
    if not world.interface.bound:
        return {}
    return {"DPoP": world.rp.proof(method, USERINFO, access_token or token(world))}


def refuse(world: World, status: int, error: str, method: str = "GET", **headers: Any) -> str:
    """Refused, nothing spent: the honest proof beside it serves afterwards."""
    proof = proven(world, method)
    with world.nothing_spent():
        answer = world.userinfo(method=method, **{**proof, **headers})
        sentence = resource_refusal(answer, status, error, world.expected.challenge)
    assert world.userinfo(method=method, **proof).status_code == 200
    return sentence


@pytest.mark.generations(*PUSHED)
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
@pytest.mark.parametrize("value", [None, "", "Bearer abc", "Basic cnAtMTpz", "DPoPx abc", "abc", "Digest x"])
@pytest.mark.parametrize("proof", [None, "x"])
def test_without_credentials_of_our_scheme_it_is_a_bare_401(
    holder: World, method: str, value: str | None, proof: str | None
) -> None:
    """Spec 7.4 rule 2: no error code, description or body; D24: only the challenge."""
    with holder.nothing_spent():
        answer = holder.userinfo(method=method, Authorization=value, DPoP=proof)
    assert (answer.status_code, answer.content) == (401, b"")
    assert answer.headers.get_list("www-authenticate") == [holder.expected.challenge]
    assert not_cached(answer)


def test_a_bound_token_under_bearer_is_a_foreign_scheme_here(holder: World) -> None:
    """D24; RFC 9449 §7.1: a bound token is never a bearer token."""
    answer = holder.userinfo(Authorization=f"Bearer {token(holder)}")
    assert (answer.status_code, answer.content) == (401, b"")


@pytest.mark.generations(*EVERY)
def test_a_token_in_query_or_body_is_not_looked_at(holder: World) -> None:
    """D52: only in Authorization."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    url, body = resource(holder), f"access_token={token(holder)}"
    for answer in (
        holder.run(holder.http.get(f"{url}?{body}", headers=proven(holder))),
        holder.run(holder.http.post(url, content=body, headers={**form, **proven(holder, "POST")})),
    ):
        assert (answer.status_code, answer.content) == (401, b"")


@pytest.mark.generations(*EVERY)
@pytest.mark.parametrize("spelt", [str.lower, str.upper, str.swapcase, str.title])
def test_the_scheme_is_compared_without_case(holder: World, spelt: Callable[[str], str]) -> None:
    """D24."""
    assert holder.userinfo(Authorization=f"{spelt(holder.interface.scheme)} {token(holder)}").status_code == 200


@pytest.mark.generations(*EVERY)
def test_a_second_authorization_header_is_invalid_request(holder: World) -> None:
    """Spec 7.4: malformed."""
    honest = f"{holder.interface.scheme} {token(holder)}"
    refuse(holder, 400, "invalid_request", Authorization=[honest, honest])
    refuse(holder, 400, "invalid_request", Authorization=["Basic x", honest])


def test_without_a_proof_it_is_invalid_request(holder: World) -> None:
    """D6: scheme DPoP without a proof."""
    refuse(holder, 400, "invalid_request", DPoP=None)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "claims",
    [
        {"ath": None}, {"ath": ""}, {"ath": "A" * 43}, {"ath": 1}, {"ath": jwt.digest("another token")}, {"htm": "PUT"}, {"htu": PAR},
        {"htu": f"{USERINFO}/"}, {"iat": 0}, {"jti": None}, {"exp": 1}, {"header": {"typ": "JWT"}}, {"header": {"alg": "none"}},
    ],
)  # fmt: skip
def test_a_bad_proof_is_invalid_dpop_proof(holder: World, method: str, claims: dict[str, Any]) -> None:
    """D5: 401 at resources; D6: wrong or missing ath."""
    proof = holder.rp.proof(method, USERINFO, token(holder), **claims)
    refuse(holder, 401, "invalid_dpop_proof", method, DPoP=proof)


def test_two_proofs_are_invalid_dpop_proof(holder: World) -> None:
    """RFC 9449 §4.3 (1)."""
    proofs = [holder.rp.proof("GET", USERINFO, token(holder)) for _ in range(2)]
    refuse(holder, 401, "invalid_dpop_proof", DPoP=proofs)


def test_a_proof_for_get_does_not_serve_for_post(holder: World) -> None:
    """RFC 9449 §4.3 (8)."""
    proof = holder.rp.proof("GET", USERINFO, token(holder))
    with holder.nothing_spent():
        answer = holder.userinfo(method="POST", DPoP=proof)
        resource_refusal(answer, 401, "invalid_dpop_proof", holder.expected.challenge)


def test_a_proof_is_used_once_and_the_token_often(world: World) -> None:
    """D7."""
    access = world.tokens().access_token
    proof = world.rp.proof("GET", USERINFO, access)
    assert world.userinfo(DPoP=proof).status_code == 200
    resource_refusal(world.userinfo(DPoP=proof), 401, "invalid_dpop_proof", world.expected.challenge)
    assert [world.userinfo().status_code for _ in range(5)] == [200] * 5


def test_another_key_is_invalid_token(holder: World) -> None:
    """D6: another key than cnf.jkt."""
    refuse(holder, 401, "invalid_token", DPoP=holder.rp.proof("GET", USERINFO, token(holder), key=other_key()))


@pytest.mark.generations(*EVERY)
@pytest.mark.parametrize(("later", "status"), [(599, 200), (599.9, 200), (600, 401), (601, 401)])
def test_an_access_token_lives_for_ten_minutes(world: World, later: float, status: int) -> None:
    """Spec 8."""
    access = world.tokens().access_token
    world.clock.now += later
    answer = world.userinfo(token=access)
    assert answer.status_code == status
    if status == 401:
        assert "expired" in resource_refusal(answer, 401, "invalid_token", world.expected.challenge)


SPOILED: dict[str, Callable[[str], str]] = {
    "empty": lambda _: "DPoP",
    "blank": lambda _: "DPoP ",
    "no JWT": lambda _: "DPoP abc",
    "two": lambda t: f"DPoP {t} {t}",
    "comma": lambda t: f"DPoP {t},x",
    "padded": lambda t: f"DPoP {t}=",
    "cut": lambda t: f"DPoP {t[:-4]}",
    "unsigned": lambda t: f"DPoP {t.rpartition('.')[0]}.",
    "four parts": lambda t: f"DPoP {t}.x",
    "quoted": lambda t: f'DPoP "{t}"',
}


@pytest.mark.generations(*EVERY)
@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_a_malformed_token_is_invalid_token(holder: World, spoil: Callable[[str], str]) -> None:
    """Spec 7.4: always with a challenge."""
    spoiled = spoil(token(holder)).removeprefix("DPoP")
    refuse(holder, 401, "invalid_token", Authorization=holder.interface.scheme + spoiled)


def forged(world: World, *, header: dict[str, Any] | None = None, **changes: Any) -> str:
    """A token signed by the provider's own key, wrong in one place."""
    ring = world.run(world.provider.signing_keys.keys_at(world.clock())).ring
    claims = {**(jwt.peek(token(world))[1] or {}), **changes}
    payload = msgspec.json.encode({name: value for name, value in claims.items() if value is not None})
    signed = ring.sign(payload, "at+jwt")
    if header is None:
        return signed
    head = jwt.base64url(json.dumps({**jwt.peek(signed)[0], **header}).encode())
    return compact.sign(head.encode(), payload, ring.active.private, KNOWN["ES256"])


WRONG: list[dict[str, Any]] = [
    {"iss": "https://evil.example"}, {"iss": f"{ISSUER}/"}, {"iss": None}, {"aud": USERINFO}, {"aud": [ISSUER]}, {"aud": []},
    {"aud": None}, {"exp": None}, {"exp": "soon"}, {"exp": True}, {"iat": None}, {"jti": None}, {"jti": ""}, {"sub": None}, {"sub": 5},
    {"entity": None}, {"entity": "x"}, {"entity": {"sub": 1}}, {"cnf": None}, {"cnf": {}}, {"cnf": {"jkt": 5}}, {"cnf": "x"},
    {"client_id": "nobody"}, {"client_id": None}, {"client_id": ["rp-1"]},
    {"header": {"typ": "JWT"}}, {"header": {"typ": None}}, {"header": {"typ": "AT+JWT"}}, {"header": {"alg": "none"}},
    {"header": {"alg": "ES384"}}, {"header": {"alg": "HS256"}}, {"header": {"kid": "unknown"}}, {"header": {"kid": None}},
    {"header": {"crit": ["exp"]}},
]  # fmt: skip


@pytest.mark.generations(*EVERY)
@pytest.mark.parametrize("wrong", WRONG, ids=json.dumps)
def test_a_token_that_is_not_for_this_resource_is_invalid_token(holder: World, wrong: dict[str, Any]) -> None:
    """D20: typ, alg, iss, own URL in aud, exp; D25: an unbound token under DPoP."""
    text = forged(holder, **wrong)
    answer = holder.userinfo(token=text, **proven(holder, access_token=text))
    if "cnf" in wrong and not holder.interface.bound:
        assert answer.status_code == 200
        return
    resource_refusal(answer, 401, "invalid_token", holder.expected.challenge)


@pytest.mark.generations(*EVERY)
@pytest.mark.parametrize(
    "fine", [{}, {"header": {"typ": "application/at+jwt"}}, {"aud": ["https://other.example"]}, {"more": 1}]
)
def test_the_same_forge_makes_tokens_that_are_taken_when_nothing_is_wrong(holder: World, fine: dict[str, Any]) -> None:
    """D20: also application/at+jwt; without this the test above could not fail."""
    if "aud" in fine:
        fine = {"aud": [resource(holder), *fine["aud"]]}
    text = forged(holder, **fine)
    assert holder.userinfo(token=text).status_code == 200


@pytest.mark.generations(*EVERY)
def test_a_token_of_another_provider_with_the_same_claims_is_invalid_token(holder: World) -> None:
    """D20: our keys alone."""
    stranger = key_ring.open_signing_key(
        key_ring.generate_private_jwk(), active_from=0, retired_at=None, revoked_at=None
    )
    ring = key_ring.build([stranger], now=1, kept_seconds=1)
    text = ring.sign(msgspec.json.encode(jwt.peek(token(holder))[1]), "at+jwt")
    resource_refusal(holder.userinfo(token=text), 401, "invalid_token", holder.expected.challenge)


@pytest.mark.generations(*EVERY, differ=True)
def test_an_id_token_or_userinfo_answer_is_no_access_token(holder: World) -> None:
    """D20: typ; SECURITY.md: kinds of tokens cannot stand for each other."""
    tokens = holder.rp.sign_in.tokens
    assert tokens is not None
    signed = holder.userinfo().text if holder.interface.userinfo.signed else tokens.raw["id_token"]
    for other in (signed, tokens.raw["id_token"]):
        resource_refusal(holder.userinfo(token=other), 401, "invalid_token", holder.expected.challenge)


def off(record: Any) -> Any:
    return msgspec.structs.replace(record, enabled=False)


TAKEN_AWAY: dict[str, Callable[[World], None]] = {
    "client off": lambda w: w.writes(off(w.client())),
    "client gone": lambda w: w.deletes(w.client()),
    "scope gone": lambda w: w.writes(w.client(scopes=("openid", "authinfo"))),
    "generation gone": lambda w: w.writes(w.client(generations=(ANOTHER[w.interface.name],))),
    "user off": lambda w: w.writes(off(directory.ALICE)),
    "entity off": lambda w: w.writes(off(directory.HARBOUR)),
    "membership off": lambda w: w.writes(off(directory.MEMBERSHIP)),
    "membership gone": lambda w: w.deletes(directory.MEMBERSHIP),
}


@pytest.mark.generations(*EVERY)
@pytest.mark.parametrize("change", TAKEN_AWAY.values(), ids=TAKEN_AWAY)
def test_what_was_taken_away_since_the_token_was_issued_is_invalid_token(
    world: World, change: Callable[[World], None]
) -> None:
    """D50: at every resource, within five seconds."""
    world.tokens()
    assert world.userinfo().status_code == 200
    change(world)
    resource_refusal(world.userinfo(), 401, "invalid_token", world.expected.challenge)


def test_par_refusals_carry_no_challenge_of_a_resource(holder: World) -> None:
    """D5, D24."""
    json_refusal(
        holder.push(headers={"Authorization": f"DPoP {token(holder)}"}, state="s"), 400, "invalid_request", state="s"
    )
