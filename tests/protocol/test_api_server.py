"""The authorization server of the admin API: its metadata, and its token endpoint (D59; RFC 8414, RFC 6749 §4.4)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from corpid.rules.oauth.api_client import API_SCOPES
from corpid_dev.relying_party.jwt import peek
from tests.adapters.rp_server import answer as answering
from tests.adapters.rp_server import relying_party
from tests.protocol import directory
from tests.protocol.api_callers import (
    API_ISSUER,
    API_TOKEN,
    METADATA,
    ApiCaller,
    caller,
    registered,
    registers,
)
from tests.protocol.deployment import ISSUER, PAR, TOKEN, other_key
from tests.protocol.issuers import BELOW, BESIDE, two
from tests.protocol.refusals import LOG, json_refusal
from tests.world.clients import rp_keys
from tests.world.provider import EVENT

if TYPE_CHECKING:
    from tests.protocol.provider import World, Worlds

HARBOUR = directory.HARBOUR.entity_id
NO_FORM = {"Content-Type": "application/json"}
REPEATABLE = ("grant_type", "scope", "client_id", "client_assertion_type", "client_assertion", "client_secret")


@pytest.fixture
def api(world: World) -> ApiCaller:
    """A client of the API with every scope, bound to no entity."""
    return registers(world)


def refuse(api: ApiCaller, status: int, error: str, /, headers: Any = None, **form: Any) -> str:
    """A request with one thing wrong: refused, nothing spent; then honestly with the same assertion and proof."""
    honest: dict[str, Any] = {"client_assertion": api.assertion()}
    proof = {"DPoP": api.proof("POST", API_TOKEN)}
    with api.world.nothing_spent():
        sentence = json_refusal(api.ask({**proof, **(headers or {})}, **{**honest, **form}), status, error)
    assert api.ask(proof, **honest).status_code == 200
    return sentence


# Metadata


def document(base: str = ISSUER) -> dict[str, Any]:
    return {
        "issuer": f"{base}/api",
        "token_endpoint": f"{base}/api/token",
        "jwks_uri": f"{base}/.well-known/keys",
        "scopes_supported": list(API_SCOPES),
        "grant_types_supported": ["client_credentials"],
        "token_endpoint_auth_methods_supported": ["private_key_jwt"],
        "token_endpoint_auth_signing_alg_values_supported": ["ES256", "ES256K", "ES384", "ES512"],
        "dpop_signing_alg_values_supported": ["ES256", "ES256K", "ES384", "ES512"],
    }


def test_the_metadata_is_a_document_of_its_own(shared: World) -> None:
    """D59, RFC 8414 §3.1; no other site may read it (D39)."""
    answer = shared.get(METADATA)
    assert (answer.status_code, answer.json()) == (200, document())
    assert answer.headers["cache-control"] == "public, max-age=3600"
    assert "access-control-allow-origin" not in answer.headers
    assert shared.run(shared.http.head(METADATA)).status_code == 200
    assert shared.run(shared.http.post(METADATA)).status_code == 405


def test_the_path_of_base_url_stands_within_the_well_known_address(worlds: Worlds) -> None:
    """RFC 8414 §3.1: inserted between host and path."""
    base = f"{ISSUER}/one/two"
    world = worlds.fresh(base_url=base)
    answer = world.get(f"{ISSUER}/.well-known/oauth-authorization-server/one/two/api")
    assert (answer.status_code, answer.json()) == (200, document(base))
    for path in ("/.well-known/oauth-authorization-server/api", "/one/two/.well-known/oauth-authorization-server/api"):
        assert world.get(f"{ISSUER}{path}").status_code == 404, path


@pytest.mark.parametrize("there", [BESIDE, BELOW])
def test_a_further_issuer_has_no_admin_api(worlds: Worlds, there: str) -> None:
    """D62."""
    made = two(worlds, there)
    place = there.removeprefix(ISSUER) if there == BELOW else ""
    for path in (
        f"{there}/api/token",
        f"{there.removesuffix(place)}/.well-known/oauth-authorization-server{place}/api",
    ):
        assert made.get(path).status_code == 404, path
    assert made.get(METADATA).json() == document()


def test_an_issuer_at_the_root_of_the_host_does_not_hide_the_metadata(worlds: Worlds) -> None:
    """D59, D62: the address lies outside of the first issuer's base_url, inside the other's."""
    base = f"{ISSUER}/first"
    further = ({"id": "root", "base_url": ISSUER, "generations": ["legacy"]},)
    world = worlds.fresh(base_url=base, issuers=further)
    assert world.get(f"{ISSUER}/.well-known/oauth-authorization-server/first/api").json() == document(base)


# Tokens


def test_a_token_is_for_the_api_bound_to_the_key_and_signed_by_the_provider(api: ApiCaller) -> None:
    """RFC 9068 §2, RFC 9449 §6, D59: ten minutes, every registered scope unless some are asked for."""
    answer = api.ask()
    body = answer.json()
    token = body.pop("access_token")
    assert body == {"token_type": "DPoP", "expires_in": 600, "scope": " ".join(API_SCOPES)}
    assert answer.headers.get_list("cache-control") == ["no-store"]
    header, claims = peek(token)
    kids = [key["kid"] for key in api.world.get(f"{ISSUER}/.well-known/keys").json()["keys"]]
    assert header.pop("kid") in kids
    assert header == {"typ": "at+jwt", "alg": "ES256"}
    now = int(api.clock())
    assert claims is not None
    assert len(claims.pop("jti")) == 43
    assert claims == {
        "iss": API_ISSUER, "aud": [f"{ISSUER}/api/v1"], "sub": "api-1", "client_id": "api-1",
        "scope": " ".join(API_SCOPES), "iat": now, "exp": now + 600, "cnf": {"jkt": api.sign_in.dpop_key.thumbprint()},
    }  # fmt: skip


def test_a_token_has_the_scopes_asked_for_and_names_the_entity_of_its_client(world: World) -> None:
    """RFC 6749 §3.3, D59."""
    api = registers(world, scopes=("directory.read", "directory.write"), entity_id=HARBOUR)
    _, claims = peek(api.access_token(scope="directory.read directory.read"))
    assert claims is not None
    assert (claims["scope"], claims["entity_id"]) == ("directory.read", HARBOUR)


def test_the_log_line_names_the_client_and_never_the_token(api: ApiCaller) -> None:
    """D48."""
    start = LOG.tell()
    token = api.access_token()
    api.ask(scope="everything")
    lines = [json.loads(line) for line in LOG.getvalue()[start:].splitlines()]
    told = [(each["path"], each["status"], each.get("client_id"), each.get("reason")) for each in lines]
    assert told == [("/api/token", 200, "api-1", None), ("/api/token", 400, "api-1", "scope_unknown")]
    assert token.encode() not in LOG.getvalue()


# Refusals


@pytest.mark.parametrize("grant", ["authorization_code", "refresh_token", "password", "Client_credentials"])
def test_another_grant_type_is_unsupported(api: ApiCaller, grant: str) -> None:
    """D59: client_credentials only."""
    assert refuse(api, 400, "unsupported_grant_type", grant_type=grant) == "grant_type must be client_credentials"


def test_a_request_without_grant_type_is_invalid(api: ApiCaller) -> None:
    assert "grant_type" in refuse(api, 400, "invalid_request", grant_type=None)


@pytest.mark.parametrize("name", REPEATABLE)
def test_a_repeated_parameter_is_invalid_request(api: ApiCaller, name: str) -> None:
    """D14."""
    assert refuse(api, 400, "invalid_request", **{name: ["x", "x"]}) == f"parameter {name} is repeated"


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_another_method_is_405(shared: World, method: str) -> None:
    """D32."""
    answer = shared.run(shared.http.request(method, API_TOKEN))
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_another_content_type_is_invalid_request(api: ApiCaller) -> None:
    """D14."""
    refuse(api, 400, "invalid_request", headers=NO_FORM)


def test_too_many_parameters_are_invalid_request(api: ApiCaller) -> None:
    """D47."""
    answer = api.ask(body=b"&".join(b"a=b" for _ in range(101)))
    assert "more than 100 parameters" in json_refusal(answer, 400, "invalid_request")


@pytest.mark.parametrize(
    ("scope", "sentence"),
    [
        ("openid", "scope openid is not known here"),
        ("directory.read openid", "scope openid is not known here"),
        ("directory.read  audit.read", "separated by single spaces"),
        ("directory.write", "this client is not registered for scope directory.write"),
        ("directory.read directory.write", "this client is not registered for scope directory.write"),
        ("DIRECTORY.READ", "is not known here"),
    ],
)
def test_no_scope_beyond_the_registered_ones_is_given(world: World, scope: str, sentence: str) -> None:
    """RFC 6749 §3.3, D59: refused as a whole, never cut down in silence."""
    api = registers(world, scopes=("directory.read", "audit.read"))
    assert sentence in refuse(api, 400, "invalid_scope", scope=scope)


@pytest.mark.parametrize(
    "more",
    [{"client_secret": "x"}, {"headers": {"Authorization": "Basic YTpi"}}, {"headers": {"Authorization": "DPoP x"}}],
)
def test_a_second_way_of_authentication_is_refused(api: ApiCaller, more: dict[str, Any]) -> None:
    """D8."""
    refuse(api, 400, "invalid_request", **more)


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": ISSUER},
        {"aud": API_TOKEN},
        {"aud": TOKEN},
        {"aud": f"{ISSUER}/api/v1"},
        {"aud": f"{API_ISSUER}/"},
        {"aud": [API_ISSUER]},
        {"jti": None},
        {"iat": None},
        {"exp": None},
        {"iss": "api-2"},
        {"sub": "api-2"},
        {"iss": "nobody", "sub": "nobody"},
        {"header": {"alg": "none"}},
        {"header": {"typ": "dpop+jwt"}},
        {"header": {"kid": "another"}},
    ],
    ids=str,
)
def test_an_assertion_is_judged_as_strictly_as_at_the_core(api: ApiCaller, changes: dict[str, Any]) -> None:
    """D8: and its audience is the API's issuer alone."""
    refuse(api, 401, "invalid_client", client_assertion=api.assertion(**changes))


@pytest.mark.parametrize(("exp", "iat"), [(121, 0), (-1, -60), (60, 31)])
def test_an_assertion_lives_120_seconds_at_most_and_now(api: ApiCaller, exp: int, iat: int) -> None:
    """D8."""
    now = int(api.clock())
    refuse(api, 401, "invalid_client", client_assertion=api.assertion(iat=now + iat, exp=now + exp))


def test_the_assertion_of_another_client_is_refused(api: ApiCaller) -> None:
    """D8: whoever they say they are."""
    other = registers(api.world, "api-2")
    refuse(api, 401, "invalid_client", client_assertion=api.assertion(key=other_key()))
    refuse(api, 401, "invalid_client", client_assertion=other.assertion(), client_id="api-1")
    forged = api.assertion(key=other.keys.signing, header={"kid": other.keys.signing.get("kid")})
    refuse(api, 401, "invalid_client", client_assertion=forged)


def test_a_relying_party_is_no_client_of_the_api(api: ApiCaller) -> None:
    """D59: also with an assertion for the API; the refusal does not say whether it exists."""
    rp = api.world.party("rp-1")
    assertion = caller(api.world, "rp-1").assertion()
    told = refuse(api, 401, "invalid_client", client_assertion=assertion)
    assert told == refuse(api, 401, "invalid_client", client_assertion=caller(api.world, "nobody").assertion())
    refuse(api, 401, "invalid_client", client_assertion=rp.assertion())


def test_a_client_of_the_api_is_no_relying_party(api: ApiCaller) -> None:
    """D59: neither with an assertion for the core nor with one for the API, at PAR and token endpoint."""
    rp = api.world.party("api-1")
    for assertion in (rp.assertion(), api.assertion()):
        json_refusal(api.world.push(rp, client_assertion=assertion, state="s"), 401, "invalid_client", state="s")
        json_refusal(api.world.redeem("c" + "A" * 43, rp, client_assertion=assertion), 401, "invalid_client")
    assert api.ask().status_code == 200


def test_the_core_has_no_client_credentials(world: World) -> None:
    """D59: the core's token endpoint stays as it is."""
    answer = world.redeem(world.code(), grant_type="client_credentials")
    assert json_refusal(answer, 400, "unsupported_grant_type") == "grant_type must be authorization_code"


@pytest.mark.parametrize(
    "changes",
    [
        {"htu": TOKEN},
        {"htu": PAR},
        {"htu": f"{API_TOKEN}/"},
        {"htu": f"{ISSUER}/api/v1"},
        {"htm": "GET"},
        {"jti": None},
        {"iat": 0},
        {"header": {"typ": "JWT"}},
        {"header": {"alg": "none"}},
    ],
    ids=str,
)
def test_a_proof_that_is_not_for_this_request_is_refused(api: ApiCaller, changes: dict[str, Any]) -> None:
    """RFC 9449 §4.3, D7."""
    refuse(api, 401, "invalid_dpop_proof", headers={"DPoP": api.proof("POST", API_TOKEN, **changes)})


def test_a_request_without_proof_is_refused(api: ApiCaller) -> None:
    """D59: tokens are bound to a key, always."""
    assert refuse(api, 400, "invalid_request", headers={"DPoP": None}) == "a DPoP header is required"


def test_two_proofs_are_refused(api: ApiCaller) -> None:
    """RFC 9449 §4.3."""
    refuse(api, 401, "invalid_dpop_proof", headers={"DPoP": [api.proof("POST", API_TOKEN) for _ in range(2)]})


def test_an_assertion_and_a_proof_work_once(api: ApiCaller) -> None:
    """D7, D8: each is spent for itself, and its replay is audited."""
    assertion, proof = api.assertion(), {"DPoP": api.proof("POST", API_TOKEN)}
    assert api.ask(proof, client_assertion=assertion).status_code == 200
    again = api.ask(client_assertion=assertion)
    assert "already used" in json_refusal(again, 401, "invalid_client")
    json_refusal(api.ask(proof), 401, "invalid_dpop_proof")
    assert api.world.audited()[-2:] == ["assertion.replay", "proof.replay"]


def test_a_disabled_or_removed_client_gets_no_token(api: ApiCaller) -> None:
    """D50: within five seconds."""
    registers(api.world, enabled=False)
    json_refusal(api.ask(), 401, "invalid_client")
    registers(api.world)
    assert api.ask().status_code == 200
    api.world.deletes(registered())
    json_refusal(api.ask(), 401, "invalid_client")


def test_a_client_bound_to_a_disabled_or_removed_entity_gets_no_token(world: World) -> None:
    """D50, D59."""
    api = registers(world, entity_id=HARBOUR)
    assert api.ask().status_code == 200
    world.writes(replace(directory.HARBOUR, enabled=False))
    with world.nothing_spent():
        json_refusal(api.ask(), 400, "unauthorized_client")
    world.writes(directory.HARBOUR)
    assert api.ask().status_code == 200
    world.deletes(directory.HARBOUR)
    json_refusal(api.ask(), 400, "unauthorized_client")


def test_too_many_requests_of_one_client_are_429(worlds: Worlds) -> None:
    """D47: counted as at the core's token endpoint, by client and by address."""
    world = worlds.fresh(token_per_client=5)
    api, other = registers(world), registers(world, "api-2")
    assert [api.ask().status_code for _ in range(6)] == [200] * 5 + [429]
    assert other.ask().status_code == 200


def test_a_token_is_given_during_maintenance(api: ApiCaller) -> None:
    """The client that is to end it needs one."""
    api.world.run(api.world.provider.registry.deployment.set_maintenance(True, EVENT))
    api.world.provider.registry_cache.drop()
    assert api.world.push().status_code == 503
    assert api.ask().status_code == 200


def test_nonces_are_demanded_where_an_operator_wants_them(worlds: Worlds) -> None:
    """RFC 9449 §8, D7: at the API as everywhere."""
    api = registers(worlds.fresh(dpop_nonces=True))
    assertion = api.assertion()
    challenge = api.ask(client_assertion=assertion)
    json_refusal(challenge, 400, "use_dpop_nonce")
    proof = api.proof("POST", API_TOKEN, nonce=challenge.headers["dpop-nonce"])
    assert api.ask({"DPoP": proof}, client_assertion=assertion).status_code == 200


def test_keys_at_a_url_are_fetched_and_kept(worlds: Worlds) -> None:
    """D27: as those of relying parties, and apart from them; without any the refusal is the server's."""
    world = worlds.fresh(base_url="http://localhost:8080", developer_mode=True)
    published = json.dumps(rp_keys("api-1").public()).encode()
    serving = relying_party(answering(published), tls=False)
    url = f"http://127.0.0.1:{world.run(serving.__aenter__()).port}/keys"
    api = registers(world, jwks=None, jwks_uri=url)
    assert api.ask().status_code == 200
    kept = world.run(world.provider.registry.api_clients.fetched_key_set("api-1"))
    assert (kept is not None and kept.jwks_uri) == url
    world.run(serving.__aexit__(None, None, None))
    assert api.ask().status_code == 200
    other = registers(world, "api-2", jwks=None, jwks_uri=url)
    json_refusal(other.ask(), 500, "server_error")
