"""Consent: when it is needed, what is shared, and what a remembered one covers (D29)."""

from __future__ import annotations

import msgspec
import pytest

from corpid.rules.directory.parties import IDENTITY_SCOPES as TOLD
from corpid.rules.oauth import consent
from corpid.rules.oauth.authorization_request import AuthorizationRequest
from corpid.rules.oauth.generations import IDENTITY_SCOPES, SCOPES
from tests.unit.rules.oauth.given import CLIENT

GOVERNMENT = msgspec.structs.replace(CLIENT, sector="government")


def request(scope: str, generation: str = "current") -> AuthorizationRequest:
    return AuthorizationRequest(
        client_id=CLIENT.client_id, generation=generation, redirect_uri="https://rp.example/cb",
        scopes=tuple(scope.split()), code_challenge="c", acr="loa:2",
    )  # fmt: skip


def covered(scope: str, *remembered: str) -> bool:
    return consent.is_covered(request(scope), [tuple(each.split()) for each in remembered])


def test_consent_is_for_private_clients_that_ask_for_facts_about_person_or_entity() -> None:
    """D29: never for openid, authinfo and tpauthinfo alone."""
    assert set(IDENTITY_SCOPES) == set(TOLD) == set(SCOPES) - {"openid", "authinfo", "tpauthinfo"}
    assert not consent.needs_consent(CLIENT, ("openid", "authinfo", "tpauthinfo"))
    for scope in IDENTITY_SCOPES:
        assert consent.needs_consent(CLIENT, ("openid", scope))
        assert not consent.needs_consent(GOVERNMENT, ("openid", scope))


@pytest.mark.parametrize("scope", ["openid user.name", "user.name openid", "openid"])
def test_the_same_or_fewer_scopes_are_covered_in_any_order(scope: str) -> None:
    """D29: fewer than before need no asking."""
    assert covered(scope, "openid user.name")


@pytest.mark.parametrize("scope", ["openid user.name authinfo", "openid entity.identity"])
def test_scopes_that_grow_are_not_covered(scope: str) -> None:
    """D29: asked again when the scopes grow."""
    assert not covered(scope, "openid user.name")


def test_two_sets_are_not_added_up() -> None:
    """D29: remembered per set of scopes."""
    assert not covered("openid user.name entity.identity", "openid user.name", "openid entity.identity")
    assert covered("openid user.name", "openid entity.identity", "openid user.name")


def test_nothing_remembered_covers_nothing() -> None:
    """D29."""
    assert not covered("openid")


def test_what_a_generation_shares_unasked_counts_as_shared() -> None:
    """R-12.2: LEGACY's packed subject tells everything, so that consent at CURRENT does not cover it."""
    at_legacy = request("openid authinfo", "legacy")
    assert set(consent.shared_scopes(at_legacy)) == {"openid", "authinfo", "tpauthinfo", *IDENTITY_SCOPES}
    assert not consent.is_covered(at_legacy, [consent.shared_scopes(request("openid authinfo"))])
    assert consent.is_covered(request("openid authinfo"), [consent.shared_scopes(at_legacy)])


def test_scopes_are_stored_in_one_order_and_each_once() -> None:
    """One set is one record."""
    assert consent.shared_scopes(request("user.name openid")) == consent.shared_scopes(request("openid user.name"))


def test_it_ends_after_as_many_days_as_the_setting_says() -> None:
    """D29."""
    assert consent.expiry(1000.9, 2) == 1000 + 2 * 86400
