"""Scopes: what exists, and what a client may ask (Spec 4.1, 4.9, D5, D29)."""

from __future__ import annotations

import msgspec
import pytest

from corpid.rules.oauth.authorization_request import validate_scopes
from corpid.rules.oauth.errors import InvalidScope
from corpid.rules.oauth.generations import CURRENT, LEGACY
from tests.unit.rules.oauth.given import CLIENT

GOVERNMENT = msgspec.structs.replace(CLIENT, sector="government")


def test_scopes_are_kept_in_the_order_asked_and_each_once() -> None:
    assert validate_scopes("authinfo openid authinfo openid", CLIENT.scopes, CURRENT.scopes) == ("authinfo", "openid")


@pytest.mark.parametrize(
    "text", ["", " ", "openid ", " openid", "openid  authinfo", "openid\tauthinfo", 'openid "', "ü"]
)
def test_a_scope_that_is_no_list_of_names_is_refused(text: str) -> None:
    """RFC 6749 §3.3: single spaces between names of printable characters."""
    with pytest.raises(InvalidScope, match="separated by single spaces"):
        validate_scopes(text, CLIENT.scopes, CURRENT.scopes)


@pytest.mark.parametrize("text", ["authinfo", "OpenID", "openid2"])
def test_openid_is_mandatory(text: str) -> None:
    with pytest.raises(InvalidScope, match="must include openid"):
        validate_scopes(text, CLIENT.scopes, CURRENT.scopes)


@pytest.mark.parametrize("text", ["openid profile", "openid unknown authinfo"])
def test_an_unknown_scope_is_refused_by_name_with_those_that_are_known(text: str) -> None:
    """Spec 4.1: unrecognised."""
    with pytest.raises(InvalidScope, match=f"scope {text.split()[1]} is not known here; known: openid authinfo"):
        validate_scopes(text, CLIENT.scopes, CURRENT.scopes)


def test_a_scope_that_the_client_lacks_is_refused_by_name() -> None:
    """Spec 4.1: unauthorised."""
    with pytest.raises(InvalidScope, match=r"is not registered for scope entity\.identity"):
        validate_scopes("openid entity.identity", CLIENT.scopes, CURRENT.scopes)


def test_a_scope_that_the_generation_does_not_have_is_refused_whatever_the_client_may_ask() -> None:
    """Spec "Generations": LEGACY publishes openid, authinfo and tpauthinfo."""
    assert validate_scopes("openid authinfo tpauthinfo", CLIENT.scopes, LEGACY.scopes) == (
        "openid",
        "authinfo",
        "tpauthinfo",
    )
    with pytest.raises(InvalidScope, match=r"scope user\.name is not known here"):
        validate_scopes("openid user.name", CLIENT.scopes, LEGACY.scopes)
