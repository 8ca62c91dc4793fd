"""authorization-info: who may do what, signed, for a bearer token (Spec 2.6, 4.5; RFC 6750; D18, D20, D23, D24, D25, D50)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from corpid.sandbox import jwt
from tests.protocol import directory
from tests.protocol.deployment import EVENT, FAR, ISSUER, LIVE
from tests.protocol.provider import World, Worlds
from tests.protocol.refusals import not_cached, resource_refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx

URL = f"{ISSUER}/authorization-info"
CHALLENGE = f'Bearer realm="{ISSUER}"'
AUTH_INFO = {
    "Result_Set": {
        "ESrvc_Row_Count": 1,
        "ESrvc_Result": [
            {
                "CPESrvcID": "PERMITS",
                "Auth_Result_Set": {
                    "Row_Count": 1,
                    "Row": [
                        {
                            "CPEntID_SUB": "PORT",
                            "CPRole": "Maker",
                            "StartDate": "2020-01-01",
                            "EndDate": "9999-12-31",
                            "Parameter": [{"name": "Year", "value": "2027"}],
                        }
                    ],
                },
            }
        ],
    }
}
TP_AUTH_INFO = {
    "Result_Set": {
        "ESrvc_Row_Count": 1,
        "ESrvc_Result": [
            {
                "CPESrvcID": "PERMITS",
                "Auth_Set": {
                    "ENT_ROW_COUNT": 1,
                    "TP_Auth": [
                        {
                            "CP_Clnt_ID": "201000001A",
                            "CP_ClntEnt_TYPE": "UEN",
                            "Auth_Result_Set": {
                                "Row_Count": 1,
                                "Row": [
                                    {
                                        "CP_ClntEnt_SUB": "",
                                        "CPRole": "Checker",
                                        "StartDate": "2021-02-03",
                                        "EndDate": "9999-12-31",
                                        "Parameter": [{"name": "Year", "value": ""}],
                                    }
                                ],
                            },
                        }
                    ],
                },
            }
        ],
    }
}
NOTHING = {"Result_Set": {"ESrvc_Row_Count": 0, "ESrvc_Result": []}}


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


def payload(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    return dict(jwt.peek(answer.text)[1] or {})


def refuse(world: World, status: int, error: str, method: str = "POST", **headers: Any) -> str:
    """Refused with exactly one challenge, and nothing is written."""
    with world.nothing_spent():
        return resource_refusal(world.userinfo(method=method, **headers), status, error, CHALLENGE)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_it_answers_with_both_blocks_in_full(holder: World, method: str) -> None:
    """Spec 2.6: exactly this; D25: GET too."""
    answer = holder.userinfo(method=method)
    now = int(holder.clock.now)
    tokens = holder.rp.sign_in.tokens
    assert tokens is not None
    assert payload(answer) == {
        "aud": "rp-1",
        "iss": ISSUER,
        "sub": tokens.id_token["sub"],
        "iat": now,
        "exp": now + 600,
        "AuthInfo": AUTH_INFO,
        "TPAuthInfo": TP_AUTH_INFO,
    }
    assert answer.headers["content-type"] == "application/jwt"
    assert not_cached(answer)
    assert "www-authenticate" not in answer.headers
    header = jwt.peek(answer.text)[0]
    assert (header["alg"], header["typ"]) == ("ES256", "JWT")


@pytest.mark.parametrize("method", [None, "GET", "POST"])
def test_a_strict_relying_party_believes_it(holder: World, method: str | None) -> None:
    """Spec 2.6: signature, envelope, counts and shapes."""
    assert holder.run(holder.rp.userinfo(method)).keys() >= {"AuthInfo", "TPAuthInfo"}


@pytest.mark.parametrize(
    ("scope", "blocks"),
    [("openid", set()), ("openid authinfo", {"AuthInfo"}), ("openid tpauthinfo", {"TPAuthInfo"})],
)
def test_each_block_needs_its_scope(world: World, scope: str, blocks: set[str]) -> None:
    """Spec 2.6, R-15: presence by scope."""
    world.rp.scope = scope
    world.tokens()
    assert payload(world.userinfo()).keys() - {"aud", "iss", "sub", "iat", "exp"} == blocks


def test_without_rows_auth_info_counts_nothing_and_tp_auth_info_is_absent(world: World) -> None:
    """D23; R-4.2: a missing assignment is no error."""
    world.tokens()
    world.deletes(directory.MAKER, directory.THIRD_PARTY)
    found = payload(world.userinfo())
    assert found["AuthInfo"] == NOTHING
    assert "TPAuthInfo" not in found


def test_stringified_blocks_are_texts_that_hold_the_same(world: World) -> None:
    """D22, R-0.6: per client."""
    rp = world.registers(generations=("legacy",), legacy_until=FAR, stringified_blocks=True)
    world.tokens(rp)
    found = payload(world.userinfo(rp))
    assert json.loads(found["AuthInfo"]) == AUTH_INFO
    assert json.loads(found["TPAuthInfo"]) == TP_AUTH_INFO


@pytest.mark.parametrize("enc", ["A256GCM", "A256CBC-HS512"])
def test_it_is_never_encrypted(world: World, enc: str) -> None:
    """R-15: compact JWS, not encrypted; D22 is about userinfo."""
    rp = world.registers(generations=("legacy",), legacy_until=FAR, userinfo_encryption_enc=enc)
    world.tokens(rp)
    assert payload(world.userinfo(rp))["AuthInfo"] == AUTH_INFO


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "application/json", None])
def test_a_body_is_ignored(holder: World, content_type: str | None) -> None:
    """R-15: a scope in the body is ignored; Spec 4.4 says the same of userinfo."""
    headers = {"Authorization": f"Bearer {token(holder)}", **({"Content-Type": content_type} if content_type else {})}
    body = b"scope=openid&access_token=x\xff%zz"
    answer = holder.run(holder.http.post(URL, content=body, headers=headers))
    assert payload(answer)["AuthInfo"] == AUTH_INFO


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


@pytest.mark.parametrize("form", ["Bearer", "Bearer ", "Bearer abc", "Bearer {0} {0}", "Bearer {0},x", 'Bearer "{0}"', "Bearer {0}.x"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_malformed_token_is_invalid_token(holder: World, form: str, method: str) -> None:
    """RFC 6750 §3.1."""
    refuse(holder, 401, "invalid_token", method, Authorization=form.format(token(holder)))


def forged(world: World, **changes: Any) -> str:
    """A token signed by the provider's own key, wrong in one place."""
    ring = world.run(world.provider.own_keys.ring(world.clock()))
    claims = {**(jwt.peek(token(world))[1] or {}), **changes}
    return ring.sign(msgspec.json.encode({name: value for name, value in claims.items() if value is not None}), "at+jwt")


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
    refuse(holder, 401, "invalid_token", Authorization=f"Bearer {forged(holder, **wrong)}")


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
    assert "revoked" in refuse(world, 401, "invalid_token", Authorization=f"Bearer {text}")
    world.clock.now += 599 - later
    assert "revoked" in refuse(world, 401, "invalid_token", Authorization=f"Bearer {text}")


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
    """Decisions "Generations": LEGACY is named per client, with an end date."""
    world.registers(generations=("legacy",), legacy_until="2027-01-15")
    midnight = world.clock.now + 16 * 3600 - LIVE
    world.clock.now = midnight - 300
    world.sign_in()
    world.tokens()
    world.clock.now = midnight - 1
    assert world.userinfo().status_code == 200
    world.clock.now = midnight
    refuse(world, 401, "invalid_token")


def test_under_maintenance_it_says_so_without_a_challenge(world: World) -> None:
    """Spec 7; D24: a challenge is for credentials."""
    world.tokens()
    world.run(world.provider.registry.deployment.set_maintenance(True, EVENT))
    world.clock.now += LIVE
    refuse(world, 503, "temporarily_unavailable")
    world.run(world.provider.registry.deployment.set_maintenance(False, EVENT))
