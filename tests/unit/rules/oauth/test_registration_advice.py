"""Advice on registrations that are allowed, and often a mistake (D66)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from corpid.rules.oauth.client_registration import IssuerRules, Rules, advise_on_registration
from corpid.rules.oauth.generations import CURRENT, LEGACY
from corpid.rules.oauth.records import Client

RULES = Rules(developer_mode=True, issuers={"first": IssuerRules(served=(CURRENT,))})
FINE = Client(client_id="a", name="A", redirect_uris=("http://127.0.0.1:8410/callback",))
KEY = {"kty": "EC", "crv": "P-256", "x": "1", "y": "2", "use": "sig", "kid": "1"}


def given(*keys: dict[str, Any], **members: Any) -> list[str]:
    found = advise_on_registration(msgspec.structs.replace(FINE, **members), {"keys": list(keys)}, RULES)
    return [f"{each.member}: {each.reason}" for each in found]


def test_a_good_registration_needs_no_advice() -> None:
    """D66: advice that always comes is not read."""
    assert given(KEY, {**KEY, "x": "3", "use": "enc", "kid": "2"}) == []


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("http://localhost:8410/callback", "http://127.0.0.1:8410/callback are two addresses"),
        ("https://rp.example/callback/", "ends with a slash"),
        ("https://rp.example", "has no path"),
        ("https://rp.example/*", "a * stands for itself"),
    ],
)
def test_redirect_uris_that_are_easily_mistaken(uri: str, said: str) -> None:
    """D38: compared character by character."""
    (found,) = given(redirect_uris=(uri,))
    assert said in found


def test_no_advice_on_addresses_of_which_both_are_registered() -> None:
    """D38."""
    both = "http://localhost:8410/callback", "http://127.0.0.1:8410/callback"
    assert given(redirect_uris=both) == []
    assert given(redirect_uris=("https://rp.example/a", "https://rp.example/a/")) == []


def test_scopes_that_a_generation_does_not_have() -> None:
    """Spec 4.9: for example those of people with legacy."""
    (found, _) = reversed(
        given(generations=("legacy",), legacy_until="2099-12-31", scopes=("openid", "entity.identity"))
    )
    assert found.startswith("scopes: legacy does not have entity.identity")


def test_roles_need_a_service() -> None:
    """Spec 5."""
    (found,) = given(scopes=("openid", "authinfo"))
    assert "userinfo has no roles" in found


def test_services_need_a_scope_that_reads_them() -> None:
    """Spec 5: a registration that leaves scopes out has openid alone."""
    (found,) = given(services=("HARBOUR-PERMIT",))
    assert found.startswith("scopes: it has services, but may request only openid")
    assert given(services=("HARBOUR-PERMIT",), scopes=("openid", "tpauthinfo")) == []


def test_a_client_that_can_use_no_generation() -> None:
    """Spec "Generations": at an issuer of legacy alone, a client names it."""
    legacy_alone = Rules(developer_mode=True, issuers={"first": IssuerRules()})
    (found,) = advise_on_registration(FINE, None, legacy_alone)
    assert found.member == "generations"
    assert "name legacy" in found.reason
    named = msgspec.structs.replace(FINE, generations=("legacy",), legacy_until="2099-12-31")
    assert advise_on_registration(named, None, legacy_alone) == ()


def test_a_client_that_no_issuer_can_serve_is_told_why() -> None:
    """D62: the issuers that know it serve none of its generations."""
    named = msgspec.structs.replace(FINE, generations=("legacy",), legacy_until="2099-12-31")
    (found,) = advise_on_registration(named, None, RULES)
    assert (
        found.reason
        == "it cannot be used so far: it uses legacy, and this deployment serves only current: change its generations"
    )
    two = Rules(developer_mode=True, issuers={**RULES.issuers, "old": IssuerRules(served=(LEGACY,))})
    (found,) = advise_on_registration(named, None, two)
    assert found.reason.endswith("it uses legacy, and its issuer first serves only current: add old to its issuers")
    assert advise_on_registration(msgspec.structs.replace(named, issuers=("first", "old")), None, two) == ()


def test_no_scope_is_missed_where_none_is_needed() -> None:
    """Spec "LEGACY's authorization-info"."""
    legacy = Rules(developer_mode=True, issuers={"first": IssuerRules(served=(LEGACY,))})
    named = msgspec.structs.replace(FINE, generations=("legacy",), legacy_until="2099-12-31", services=("A",))
    assert advise_on_registration(named, None, legacy) == ()


def test_the_scopes_of_a_preset_are_no_mistake() -> None:
    """R-4.2: nobody has named them."""
    scopes = ("openid", "entity.identity")
    preset = Rules(
        developer_mode=True, issuers={"first": IssuerRules(served=(CURRENT, LEGACY), new_client={"scopes": scopes})}
    )
    named = msgspec.structs.replace(FINE, generations=("current", "legacy"), legacy_until="2099-12-31", scopes=scopes)
    assert advise_on_registration(named, None, preset) == ()


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ((KEY, {**KEY, "x": "3"}), "the kid '1' is there 2 times"),
        (({name: value for name, value in KEY.items() if name != "kid"},), "key 1 has no kid"),
        ((KEY, {**KEY, "use": "enc", "kid": "2"}), "key 2 signs and encrypts"),
    ],
)
def test_keys_that_cause_trouble_later(keys: tuple[dict[str, Any], ...], said: str) -> None:
    """D27."""
    (found,) = given(*keys)
    assert said in found


def test_an_address_that_works_in_developer_mode_only() -> None:
    """D27."""
    (found,) = given(jwks_uri="http://127.0.0.1:8410/jwks")
    assert "outside developer mode" in found
