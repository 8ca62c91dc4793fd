"""What the provider publishes about itself (Spec 2.8, 2.9, 4.6, 4.7; D31, D32, D39, D41, D42)."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from joserfc.jwk import ECKey

from tests.protocol.deployment import ISSUER
from tests.protocol.provider import World, Worlds
from tests.protocol.refusals import logged

if TYPE_CHECKING:
    import httpx

DISCOVERY = f"{ISSUER}/.well-known/openid-configuration"
KEYS = f"{ISSUER}/.well-known/keys"
GOLDEN = Path(__file__).parent / "golden"
GENERATIONS = ("legacy", "intermediate", "current", "fapi2")
METADATA = f"{ISSUER}/.well-known/oauth-authorization-server"
TYPES = {
    DISCOVERY: "application/json; charset=utf-8",
    METADATA: "application/json; charset=utf-8",
    KEYS: "application/jwk-set+json; charset=utf-8",
}


def golden(generation: str = "current", base: str = ISSUER) -> dict[str, object]:
    """Written by hand from the specification, never from an answer."""
    return dict(json.loads((GOLDEN / f"{generation}.json").read_text().replace(ISSUER, base)))


def fetched(world: World, url: str) -> httpx.Response:
    answer = world.run(world.http.get(url))
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_discovery_document_is_the_golden_one(generation: str, worlds: Worlds) -> None:
    """Spec 2.8, D41; Spec "Generations". Whoever changes a golden file changes the published interface."""
    world = worlds.fresh(generations=(generation,))
    assert json.loads(fetched(world, DISCOVERY).content) == golden(generation)


@pytest.mark.parametrize("generation", ["current", "intermediate"])
def test_beside_legacy_the_document_is_the_pushed_one_and_where_authorization_info_is(
    generation: str, worlds: Worlds
) -> None:
    """Spec "Side by side", D41: pushing is no longer required of everybody; one iss flag governs both."""
    world = worlds.fresh(generations=(generation, "legacy"))
    changed = {
        "authorization-info_endpoint": f"{ISSUER}/authorization-info",
        "require_pushed_authorization_requests": False,
    }
    assert json.loads(fetched(world, DISCOVERY).content) == {**golden(generation), **changed}


def test_every_field_that_the_specification_names_for_current_is_there(shared: World) -> None:
    """Spec 2.8; the fields of the legacy and intermediate variants alone are not."""
    specification = """
        issuer authorization_endpoint token_endpoint pushed_authorization_request_endpoint jwks_uri userinfo_endpoint name
        response_types_supported response_modes_supported scopes_supported subject_types_supported claims_supported
        claim_types_supported grant_types_supported code_challenge_methods_supported token_endpoint_auth_methods_supported
        token_endpoint_auth_signing_alg_values_supported id_token_signing_alg_values_supported
        id_token_encryption_alg_values_supported id_token_encryption_enc_values_supported userinfo_signing_alg_values_supported
        userinfo_encryption_alg_values_supported userinfo_encryption_enc_values_supported claims_parameter_supported
        request_parameter_supported request_uri_parameter_supported authorization_response_iss_parameter_supported
    """.split()
    beyond = {
        "dpop_signing_alg_values_supported", "acr_values_supported", "require_pushed_authorization_requests",
        "ui_locales_supported",
    }  # fmt: skip
    assert golden().keys() == {*specification, *beyond}


@pytest.mark.parametrize("base", ["https://op.example/corp/id", "https://op.example:8443", "http://localhost:8080"])
@pytest.mark.parametrize("generation", GENERATIONS)
def test_under_any_base_url_only_the_urls_differ(generation: str, base: str) -> None:
    """D32: exactly the paths of Spec 2.1, under base_url; nothing is read from Host."""
    with World(base_url=base, generations=(generation,)) as world:
        answer = fetched(world, f"{base}/.well-known/openid-configuration")
        assert json.loads(answer.content) == golden(generation, base)
        assert fetched(world, f"{base}/.well-known/keys").status_code == 200


def test_settings_that_are_published_are_published() -> None:
    """RFC 9207: the iss flag; D10: the URN prefix; the provider's name."""
    with World(return_iss=True, acr_prefix="urn:x:", name="Ministry") as world:
        document = json.loads(fetched(world, DISCOVERY).content)
    changed = {
        "authorization_response_iss_parameter_supported": True,
        "acr_values_supported": ["urn:x:2"],
        "name": "Ministry",
    }
    assert document == {**golden(), **changed}


@pytest.mark.parametrize("url", TYPES)
def test_both_documents_are_for_everybody_for_an_hour(shared: World, url: str) -> None:
    """Spec 2.8, 2.9: content types exactly; D31, D39."""
    answer = fetched(shared, url)
    headers = answer.headers
    assert headers.get_list("content-type") == [TYPES[url]]
    assert headers.get_list("cache-control") == ["public, max-age=3600"]
    assert headers.get_list("access-control-allow-origin") == ["*"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["strict-transport-security"] == "max-age=31536000"
    assert not {"pragma", "set-cookie", "www-authenticate", "vary"} & set(headers)


@pytest.mark.parametrize("url", TYPES)
@pytest.mark.parametrize("query", ["", "?x=1", "?client_id=%zz"])
def test_no_parameter_no_authentication_no_accept_is_needed(shared: World, url: str, query: str) -> None:
    """Spec 4.6, 4.7."""
    answer = shared.run(shared.http.get(url + query, headers={"Accept": "text/html", "Authorization": "Basic x"}))
    assert (answer.status_code, answer.content) == (200, fetched(shared, url).content)


@pytest.mark.parametrize("url", TYPES)
def test_head_and_a_preflight_are_answered(shared: World, url: str) -> None:
    """D32, D39: CORS for GET."""
    head = shared.run(shared.http.head(url))
    assert (head.status_code, head.headers["content-type"]) == (200, TYPES[url])
    preflight = shared.run(
        shared.http.options(url, headers={"Origin": "https://x.example", "Access-Control-Request-Method": "GET"})
    )
    assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (204, "*")
    assert preflight.headers["access-control-allow-methods"] == "GET"


@pytest.mark.parametrize("url", TYPES)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_other_methods_are_405(shared: World, url: str, method: str) -> None:
    """D32."""
    answer = shared.run(shared.http.request(method, url))
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


def test_the_key_set_holds_the_signing_key_and_the_standby_key(shared: World) -> None:
    """Spec 2.9; Spec "Generations": x5c and x5t only where LEGACY is served."""
    keys = json.loads(fetched(shared, KEYS).content)["keys"]
    assert len(keys) == 2
    for key in keys:
        assert key.keys() == {"kty", "use", "kid", "alg", "crv", "x", "y"}
        assert (key["kty"], key["use"], key["alg"], key["crv"]) == ("EC", "sig", "ES256", "P-256")
        assert len(key["kid"]) == len(key["x"]) == len(key["y"]) == 43


@pytest.mark.parametrize("generations", [("legacy",), ("current", "legacy")])
def test_where_legacy_is_served_every_key_carries_a_certificate_of_its_own(
    generations: tuple[str, ...], worlds: Worlds
) -> None:
    """Spec 2.9, R-3: x5c in plain base64, its thumbprints base64url; the same bytes after a restart."""
    world = worlds.fresh(generations=generations)
    key, _ = json.loads(fetched(world, KEYS).content)["keys"]
    (encoded,) = key["x5c"]
    der = base64.b64decode(encoded, validate=True)
    certified = x509.load_der_x509_certificate(der).public_key()
    assert certified == ECKey.import_key({name: key[name] for name in ("kty", "crv", "x", "y")}).public_key
    assert key["x5t"] == _digest(hashlib.sha1(der, usedforsecurity=False).digest())
    assert key["x5t#S256"] == _digest(hashlib.sha256(der).digest())
    with World(at=world.directory, clock=world.clock, generations=generations) as again:
        assert fetched(again, KEYS).content == fetched(world, KEYS).content


def _digest(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "path",
    [
        "/request/",
        "/Request",
        "/userinfo/x",
        "/.well-known/jwks.json",
        "/authorization-info",
        "/entity-info",
        "//request",
    ],
)
def test_what_this_generation_does_not_serve_is_404(shared: World, path: str) -> None:
    """D32; Spec "Generations": LEGACY's and INTERMEDIATE's endpoints."""
    assert shared.run(shared.http.get(f"{ISSUER}{path}")).status_code == 404
    assert shared.run(shared.http.post(f"{ISSUER}{path}")).status_code == 404


@pytest.mark.parametrize("path", ["/token", "/par", "/request/", "/oauth2/token", "/api/token/", "/nothing"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_guessed_path_names_the_discovery_document(shared: World, path: str, method: str) -> None:
    """D32: the same words for every path, so they reveal nothing; to a browser as a page."""
    answer = shared.run(shared.http.request(method, f"{ISSUER}{path}"))
    sentence, _, reference = answer.json()["error_description"].partition(" (reference ")
    assert sentence == f"there is nothing at this path: the endpoints are in {DISCOVERY}"
    assert logged(reference.rstrip(")"))["reason"] == "path_unknown"
    assert "error_uri" not in answer.json()
    page = shared.run(shared.http.request(method, f"{ISSUER}{path}", headers={"Accept": "text/html"}))
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert f'href="{DISCOVERY}"' in page.text


@pytest.mark.parametrize(
    "path", ["/.well-known/keys", "/.well-known/openid-configuration", "/mga/sps/oauth/oauth20/token", "/language/en"]
)
@pytest.mark.parametrize("slash", ["%2f", "%2F"])
def test_a_path_with_an_encoded_slash_is_another_path(shared: World, path: str, slash: str) -> None:
    """RFC 3986 §2.2: a proxy that keeps a path to itself does not know it by this spelling; D32."""
    head, _, last = path.rpartition("/")
    assert shared.run(shared.http.get(f"{ISSUER}{path}")).status_code != 404
    for method in ("GET", "HEAD", "POST", "OPTIONS"):
        answer = shared.run(shared.http.request(method, f"{ISSUER}{head}{slash}{last}"))
        assert (answer.status_code, "set-cookie" in answer.headers) == (404, False)


@pytest.mark.parametrize(
    ("generation", "path"),
    [
        ("legacy", "/request"),
        ("legacy", "/userinfo"),
        ("legacy", "/entity-info"),
        ("intermediate", "/authorization-info"),
        ("fapi2", "/entity-info"),
        ("fapi2", "/authorization-info"),
    ],
)
def test_what_another_generation_has_is_404(generation: str, path: str, worlds: Worlds) -> None:
    """Spec "Unserved modes and endpoints": PAR where only LEGACY is served, and every resource of another generation."""
    world = worlds.fresh(generations=(generation,))
    for method in ("GET", "POST"):
        answer = world.run(world.http.request(method, f"{ISSUER}{path}"))
        assert (answer.status_code, answer.json()["error"]) == (404, "invalid_request")
