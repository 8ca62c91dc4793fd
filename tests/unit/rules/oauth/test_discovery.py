"""The discovery document (OpenID Connect Discovery §3, RFC 8414 §2, Spec 2.1, 2.8, D41)."""

from __future__ import annotations

import json

import pytest

from corpid.rules.oauth.discovery import discovery
from corpid.rules.oauth.generations import CURRENT, INTERMEDIATE, LEGACY, Generation
from tests.unit.rules.oauth.given import PREFIX


def document(base_url: str = "https://op.example", *served: Generation, returns_iss: bool = False) -> dict[str, object]:
    return discovery(
        served or (CURRENT,),
        base_url=base_url,
        name="CorpID",
        acr_prefix=PREFIX,
        returns_iss=returns_iss,
        languages=["en", "ms"],
    )


PATHS = {
    "authorization_endpoint": "/mga/sps/oauth/oauth20/authorize",
    "token_endpoint": "/mga/sps/oauth/oauth20/token",
    "pushed_authorization_request_endpoint": "/request",
    "jwks_uri": "/.well-known/keys",
    "userinfo_endpoint": "/userinfo",
}


@pytest.mark.parametrize("base_url", ["https://op.example", "http://localhost:8080", "https://op.example/tenant/a"])
def test_every_url_stands_under_base_url(base_url: str) -> None:
    """Spec 2.1, D32."""
    found = document(base_url)
    assert found["issuer"] == base_url
    assert {name: found[name] for name in PATHS} == {name: base_url + path for name, path in PATHS.items()}


def test_the_values_are_those_of_the_current_generation() -> None:
    expected = {
        "name": "CorpID",
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code"],
        "subject_types_supported": ["public"],
        "claim_types_supported": ["normal"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["private_key_jwt"],
        "token_endpoint_auth_signing_alg_values_supported": ["ES256", "ES256K", "ES384", "ES512"],
        "dpop_signing_alg_values_supported": ["ES256", "ES256K", "ES384", "ES512"],
        "id_token_signing_alg_values_supported": ["ES256"],
        "userinfo_signing_alg_values_supported": ["ES256"],
        "acr_values_supported": ["urn:idp:authentication:loa:2"],
        "require_pushed_authorization_requests": True,
        "ui_locales_supported": ["en", "ms"],
        "claims_parameter_supported": False,
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
    }
    found = document()
    assert {name: found.get(name) for name in expected} == expected
    scopes = found["scopes_supported"]
    assert isinstance(scopes, list)
    assert scopes[:3] == ["openid", "authinfo", "tpauthinfo"]


@pytest.mark.parametrize("returns_iss", [True, False])
def test_the_iss_flag_is_what_callbacks_do(returns_iss: bool) -> None:
    """RFC 9207 §3."""
    assert document(returns_iss=returns_iss)["authorization_response_iss_parameter_supported"] is returns_iss


def test_the_document_is_json_and_what_belongs_to_other_generations_is_absent() -> None:
    found = document()
    assert json.loads(json.dumps(found)) == found
    assert (
        not {"authorization-info_endpoint", "entityinfo_endpoint", "entityinfo_signing_alg_values_supported"}
        & found.keys()
    )


def test_beside_another_generation_only_the_resources_of_it_are_added() -> None:
    """Spec "Side by side"; D41: what is pushed need not be, once a query is taken too."""
    alone, together = document(), document("https://op.example", CURRENT, LEGACY)
    more = {
        "authorization-info_endpoint": "https://op.example/authorization-info",
        "require_pushed_authorization_requests": False,
    }
    assert together == {**alone, **more}


def test_a_generation_with_two_resources_names_both() -> None:
    found = document("https://op.example", INTERMEDIATE)
    assert (found["userinfo_endpoint"], found["entityinfo_endpoint"]) == (
        "https://op.example/userinfo",
        "https://op.example/entity-info",
    )


def test_alone_a_generation_of_query_requests_names_nothing_that_is_pushed() -> None:
    """Spec 2.8, Spec "LEGACY alone": both members at authorization-info."""
    found = document("https://op.example", LEGACY)
    assert found["userinfo_endpoint"] == found["authorization-info_endpoint"] == "https://op.example/authorization-info"
    assert not {
        "pushed_authorization_request_endpoint", "dpop_signing_alg_values_supported", "acr_values_supported",
        "require_pushed_authorization_requests",
    } & found.keys()  # fmt: skip
