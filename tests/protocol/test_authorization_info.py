"""authorization-info: who may do what, signed, for a bearer token (Spec 2.6, 4.5; D22, D23, D25)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from corpid_dev.relying_party import jwt
from tests.protocol import directory
from tests.protocol.deployment import ISSUER
from tests.protocol.directory import AUTH_INFO, TP_AUTH_INFO
from tests.protocol.provider import World, Worlds
from tests.protocol.refusals import not_cached
from tests.world.clients import FAR

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

URL = f"{ISSUER}/authorization-info"
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


@pytest.mark.parametrize("scope", ["openid", "openid authinfo", "openid tpauthinfo"])
@pytest.mark.parametrize("registered", [("openid",), ("openid", "authinfo", "tpauthinfo")], ids=["openid", "all"])
def test_both_blocks_are_there_whatever_the_scopes(world: World, scope: str, registered: tuple[str, ...]) -> None:
    """Spec "LEGACY's authorization-info": relying parties ask for openid alone (Spec 2.6)."""
    world.registers(generations=("legacy",), legacy_until=FAR, scopes=registered)
    world.rp.scope = scope if set(scope.split()) <= set(registered) else "openid"
    world.tokens()
    found = payload(world.userinfo())
    assert (found["AuthInfo"], found["TPAuthInfo"]) == (AUTH_INFO, TP_AUTH_INFO)
    assert world.run(world.rp.userinfo()).keys() >= {"AuthInfo", "TPAuthInfo"}


def test_the_blocks_tell_of_the_clients_services_alone(world: World) -> None:
    """Spec "LEGACY's authorization-info": AuthInfo of the client's services."""
    world.registers(generations=("legacy",), legacy_until=FAR, scopes=("openid",), services=())
    world.rp.scope = "openid"
    world.tokens()
    found = payload(world.userinfo())
    assert found["AuthInfo"] == NOTHING
    assert "TPAuthInfo" not in found


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


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "application/json", None])
def test_a_body_is_ignored(holder: World, content_type: str | None) -> None:
    """R-15: a scope in the body is ignored; Spec 4.4 says the same of userinfo."""
    headers = {"Authorization": f"Bearer {token(holder)}", **({"Content-Type": content_type} if content_type else {})}
    body = b"scope=openid&access_token=x\xff%zz"
    answer = holder.run(holder.http.post(URL, content=body, headers=headers))
    assert payload(answer)["AuthInfo"] == AUTH_INFO


def test_it_stands_under_the_path_of_the_issuer(worlds: Worlds) -> None:
    """D32: every absolute URL is built from base_url; D24: the realm is the issuer."""
    issuer = f"{ISSUER}/tenant"
    world = worlds.fresh(generations=("legacy",), base_url=issuer)
    tokens = world.tokens()
    assert tokens.access_token_claims["aud"] == [f"{issuer}/authorization-info"]
    assert world.run(world.rp.userinfo()).keys() >= {"AuthInfo", "TPAuthInfo"}
    bare = world.userinfo(Authorization=None)
    assert bare.headers.get_list("www-authenticate") == [f'Bearer realm="{issuer}"']
    assert world.run(world.http.post(URL)).status_code == 404
