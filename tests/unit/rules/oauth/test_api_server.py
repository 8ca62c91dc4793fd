"""The authorization server of the admin API, as far as it is decided without a request (D59; RFC 8414, RFC 9068)."""

from __future__ import annotations

import pytest

from corpid.rules.oauth.api_client import (
    API_SCOPES,
    RULES,
    access_token_claims,
    granted_scopes,
    metadata,
    metadata_url,
    no_person,
    validate,
)
from corpid.rules.oauth.errors import InvalidRequest, InvalidScope, UnsupportedGrantType
from corpid.rules.oauth.generations import CURRENT, AuthenticationRules

BASE = "https://op.example"


def claims(entity_id: str = "") -> dict[str, object]:
    return access_token_claims(
        base_url=BASE, client_id="portal", entity_id=entity_id, granted=("audit.read",), jkt="k", token_id="t", now=1
    )


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        (BASE, f"{BASE}/.well-known/oauth-authorization-server/api"),
        (f"{BASE}/id/two", f"{BASE}/.well-known/oauth-authorization-server/id/two/api"),
        ("http://localhost:8400", "http://localhost:8400/.well-known/oauth-authorization-server/api"),
    ],
)
def test_the_metadata_stands_between_host_and_path(base_url: str, url: str) -> None:
    """RFC 8414 §3.1."""
    assert metadata_url(base_url) == url


def test_no_list_of_the_metadata_is_empty() -> None:
    """RFC 8414 §3.2: what has no elements is left out."""
    assert all(metadata(BASE, RULES).values())


def test_assertions_and_proofs_are_judged_as_in_the_current_generation() -> None:
    """D59: as strictly, but that nobody may name an endpoint as audience."""
    fields = [name for name in AuthenticationRules.__struct_fields__ if name != "endpoint_audience"]
    assert [getattr(RULES, name) for name in fields] == [getattr(CURRENT, name) for name in fields]
    assert not RULES.endpoint_audience


def test_only_client_credentials_is_a_grant() -> None:
    validate({"grant_type": "client_credentials"})
    with pytest.raises(UnsupportedGrantType):
        validate({"grant_type": "authorization_code"})
    with pytest.raises(InvalidRequest):
        validate({})


def test_scopes_are_those_asked_for_or_every_registered_one() -> None:
    """RFC 6749 §3.3."""
    assert granted_scopes(None, API_SCOPES) == API_SCOPES
    assert granted_scopes("audit.read operations audit.read", API_SCOPES) == ("audit.read", "operations")
    with pytest.raises(InvalidScope):
        granted_scopes("operations", ("audit.read",))


def test_a_token_tells_for_whom_it_is() -> None:
    """D59: no person, and the entity if its client is bound to one."""
    assert no_person(claims()) == ("", "")
    assert no_person(claims("E1")) == ("", "E1")
    assert "entity_id" not in claims()


@pytest.mark.parametrize("changes", [{"sub": "other"}, {"client_id": "other"}, {"sub": None}, {"entity_id": None}])
def test_another_token_tells_nothing(changes: dict[str, object]) -> None:
    """RFC 9068 §2.2: of client_credentials the subject is the client."""
    assert no_person({**claims("E1"), **changes}) is None
