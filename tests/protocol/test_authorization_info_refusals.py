"""What authorization-info refuses, each with exactly one challenge (Spec 4.5; RFC 6750 §3; D18, D20, D24, D25, D50, D52)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from corpid_dev.relying_party import jwt
from tests.protocol import directory
from tests.protocol.deployment import ISSUER, LIVE
from tests.protocol.provider import World, Worlds
from tests.protocol.refusals import not_cached, resource_refusal
from tests.world.clients import FAR
from tests.world.provider import EVENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

URL = f"{ISSUER}/authorization-info"
CHALLENGE = f'Bearer realm="{ISSUER}"'


@pytest.fixture(scope="module")
def holder() -> Iterator[World]:
    """A world whose relying party holds an access token that lives as long as the module's tests."""
    with World(generations=("legacy",)) as made:
        made.tokens()
        yield made


@pytest.fixture
def world(worlds: Worlds) -> World:
    """LEGACY alone, of the test's own."""
    return worlds.fresh(generations=("legacy",))


def token(world: World) -> str:
    tokens = world.rp.sign_in.tokens
    assert tokens is not None
    return tokens.access_token


def refuse(
    world: World, status: int, error: str, method: str = "POST", *, text: str | None = None, **headers: Any
) -> str:
    """Refused with exactly one challenge, and nothing is written."""
    with world.nothing_spent():
        return resource_refusal(world.userinfo(method=method, token=text, **headers), status, error, CHALLENGE)


# Credentials


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
@pytest.mark.parametrize("value", [None, "", "DPoP abc", "Basic cnAtMTpz", "Bearerx abc", "abc"])
@pytest.mark.parametrize("proof", [None, "x"])
def test_without_credentials_of_our_scheme_it_is_a_bare_401(
    holder: World, method: str, value: str | None, proof: str | None
) -> None:
    """D24: only the challenge, empty body; issue "Bad input": a DPoP scheme at authorization-info."""
    with holder.nothing_spent():
        answer = holder.userinfo(method=method, Authorization=value, DPoP=proof)
    assert (answer.status_code, answer.content) == (401, b"")
    assert answer.headers.get_list("www-authenticate") == [CHALLENGE]
    assert not_cached(answer)


def test_its_own_token_under_dpop_is_a_foreign_scheme_here(holder: World) -> None:
    """D24."""
    text = token(holder)
    proof = holder.rp.proof("POST", URL, text)
    answer = holder.userinfo(method="POST", Authorization=f"DPoP {text}", DPoP=proof)
    assert (answer.status_code, answer.content) == (401, b"")


def test_a_token_in_query_or_body_is_not_looked_at(holder: World) -> None:
    """D52; RFC 6750 §2.2 and §2.3 are optional."""
    body = f"access_token={token(holder)}"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for asking in (holder.http.get(f"{URL}?{body}"), holder.http.post(URL, content=body, headers=form)):
        answer = holder.run(asking)
        assert (answer.status_code, answer.content) == (401, b"")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_compared_without_case_and_a_proof_beside_it_is_nothing(holder: World, scheme: str) -> None:
    """D24."""
    assert holder.userinfo(Authorization=f"{scheme} {token(holder)}", DPoP="x").status_code == 200


def test_a_second_authorization_header_is_invalid_request(holder: World) -> None:
    """RFC 6750 §3.1: malformed."""
    honest = f"Bearer {token(holder)}"
    refuse(holder, 400, "invalid_request", Authorization=[honest, honest])
    refuse(holder, 400, "invalid_request", Authorization=["DPoP x", honest])


@pytest.mark.parametrize(
    "form", ["Bearer", "Bearer ", "Bearer abc", "Bearer {0} {0}", "Bearer {0},x", 'Bearer "{0}"', "Bearer {0}.x"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_malformed_token_is_invalid_token(holder: World, form: str, method: str) -> None:
    """RFC 6750 §3.1."""
    refuse(holder, 401, "invalid_token", method, Authorization=form.format(token(holder)))


def forged(world: World, **changes: Any) -> str:
    """A token signed by the provider's own key, wrong in one place."""
    ring = world.run(world.provider.signing_keys.keys_at(world.clock())).ring
    claims = {**(jwt.peek(token(world))[1] or {}), **changes}
    return ring.sign(
        msgspec.json.encode({name: value for name, value in claims.items() if value is not None}), "at+jwt"
    )


UUID = directory.ALICE.user_id


@pytest.mark.parametrize(
    "wrong",
    [
        {"iss": "https://evil.example"}, {"aud": [f"{ISSUER}/userinfo"]}, {"aud": URL}, {"aud": None}, {"exp": 1}, {"exp": None},
        {"cnf": {"jkt": "A" * 43}}, {"client_id": "nobody"}, {"client_id": None}, {"jti": None}, {"entity": None}, {"entity": "x"},
        {"entity": {"sub": "nobody"}}, {"sub": None}, {"sub": ""}, {"sub": UUID}, {"sub": "uuid"}, {"sub": "uuid=nobody"},
        {"sub": f"s=1,u=2,x{UUID}"}, {"sub": f"uuid={UUID},uuid=nobody"}, {"sub_type": "user"}, {"sub_type": "entity"},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_a_token_that_is_not_for_this_resource_is_invalid_token(holder: World, wrong: dict[str, Any]) -> None:
    """D20; D25: a bound token under Bearer; R-12.2: a packed subject names its person once."""
    refuse(holder, 401, "invalid_token", text=forged(holder, **wrong))


@pytest.mark.parametrize("fine", [{}, {"aud": [URL, "https://other.example"]}, {"more": 1}], ids=json.dumps)
def test_the_same_forge_makes_tokens_that_are_taken_when_nothing_is_wrong(holder: World, fine: dict[str, Any]) -> None:
    """Without this the test above could not fail."""
    assert holder.userinfo(token=forged(holder, **fine)).status_code == 200


# What has changed since the token was issued


@pytest.mark.parametrize(("later", "status"), [(599.9, 200), (600, 401)])
def test_an_access_token_lives_for_ten_minutes(world: World, later: float, status: int) -> None:
    """Spec 8."""
    world.tokens()
    world.clock.now += later
    assert world.userinfo().status_code == status


@pytest.mark.parametrize("later", [0, 61, 540])
def test_a_code_that_is_presented_again_kills_its_token(world: World, later: int) -> None:
    """D18: one deny entry, as long as any token lives."""
    code = world.code()
    text = world.redeem(code).json()["access_token"]
    assert world.userinfo(token=text).status_code == 200
    world.clock.now += later
    assert world.redeem(code).json()["error"] == "invalid_grant"
    assert "revoked" in refuse(world, 401, "invalid_token", text=text)
    world.clock.now += 599 - later
    assert "revoked" in refuse(world, 401, "invalid_token", text=text)


def off(record: Any) -> Any:
    return msgspec.structs.replace(record, enabled=False)


LEGACY: dict[str, Any] = {"generations": ("legacy",), "legacy_until": FAR}
TAKEN_AWAY: dict[str, Callable[[World], object]] = {
    "client off": lambda w: w.registers(**LEGACY, enabled=False),
    "scope gone": lambda w: w.registers(**LEGACY, scopes=("openid", "authinfo")),
    "not marked": lambda w: w.registers(generations=("current",), legacy_until=None),
    "end date passed": lambda w: w.registers(generations=("legacy",), legacy_until="2027-01-14"),
    "end date taken away": lambda w: w.registers(generations=("legacy",), legacy_until=None),
    "user off": lambda w: w.writes(off(directory.ALICE)),
    "entity off": lambda w: w.writes(off(directory.HARBOUR)),
    "membership gone": lambda w: w.deletes(directory.MEMBERSHIP),
}


@pytest.mark.parametrize("change", TAKEN_AWAY.values(), ids=TAKEN_AWAY)
def test_what_was_taken_away_is_invalid_token(world: World, change: Callable[[World], object]) -> None:
    """D50: within five seconds."""
    world.tokens()
    assert world.userinfo().status_code == 200
    change(world)
    refuse(world, 401, "invalid_token")


def test_the_end_date_that_passes_while_a_token_lives_ends_it(world: World) -> None:
    """Spec "No downgrade": LEGACY is named per client, with an end date."""
    world.registers(generations=("legacy",), legacy_until="2027-01-15")
    midnight = world.clock.now + 16 * 3600 - LIVE
    world.clock.now = midnight - 300
    world.sign_in()
    world.tokens()
    world.clock.now = midnight - 1
    assert world.userinfo().status_code == 200
    world.clock.now = midnight
    refuse(world, 401, "invalid_token")


def test_under_maintenance_it_goes_on(world: World) -> None:
    """D72: Spec 7.4 knows no 503 there."""
    world.tokens()
    world.run(world.provider.registry.deployment.set_maintenance(True, EVENT))
    world.clock.now += LIVE
    assert world.run(world.rp.resource()).status_code == 200
    world.run(world.provider.registry.deployment.set_maintenance(False, EVENT))
