"""Well-known addresses of the account and of the operator's security contact (RFC 8615, RFC 9116)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from tests.protocol.deployment import ISSUER
from tests.protocol.issuers import BELOW, TwoIssuers

if TYPE_CHECKING:
    from tests.protocol.provider import Worlds

UNDER_A_PATH = f"{ISSUER}/id"
NAMED = ("change-password", "passkey-endpoints", "security.txt")


@pytest.mark.parametrize("base", [ISSUER, UNDER_A_PATH], ids=["no path", "a path"])
def test_password_managers_find_the_page_for_passwords(worlds: Worlds, base: str) -> None:
    """W3C, A Well-Known URL for Changing Passwords; RFC 8615 §3: at the root of the host, whatever the path."""
    world = worlds.fresh(base_url=base)
    answer = world.get(f"{ISSUER}/.well-known/change-password")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{base.removeprefix(ISSUER)}/account/password")


@pytest.mark.parametrize("base", [ISSUER, UNDER_A_PATH], ids=["no path", "a path"])
def test_password_managers_find_the_pages_for_passkeys(worlds: Worlds, base: str) -> None:
    """W3C, Passkey Endpoints."""
    world = worlds.fresh(base_url=base)
    answer = world.get(f"{ISSUER}/.well-known/passkey-endpoints")
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.json() == {"enroll": f"{base}/account/new-passkey", "manage": f"{base}/account/passkeys"}


def test_the_security_contact_is_published_for_half_a_year(worlds: Worlds) -> None:
    """RFC 9116 §2.5: Contact in the operator's order, Expires less than a year ahead, Canonical."""
    contacts = "mailto:security@example.org, https://example.org/report"
    world = worlds.fresh(security_contact=contacts)
    answer = world.get(f"{ISSUER}/.well-known/security.txt")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    fields = [line.split(": ", 1) for line in answer.text.splitlines()]
    assert [value for name, value in fields if name == "Contact"] == contacts.split(", ")
    assert dict(fields)["Canonical"] == f"{ISSUER}/.well-known/security.txt"
    days = (datetime.fromisoformat(dict(fields)["Expires"]).timestamp() - world.clock()) / 86400
    assert 179 <= days <= 180


def test_without_a_contact_there_is_no_security_file(worlds: Worlds) -> None:
    """RFC 9116 §2.5.3: Contact is required."""
    assert worlds.fresh().get(f"{ISSUER}/.well-known/security.txt").status_code == 404


def test_an_address_that_passkeys_cannot_belong_to_has_no_endpoints_for_them(worlds: Worlds) -> None:
    """WebAuthn §5.1.3: never an IP address."""
    world = worlds.fresh(base_url="https://192.0.2.7")
    assert world.get("https://192.0.2.7/.well-known/passkey-endpoints").status_code == 404


@pytest.mark.parametrize("name", NAMED)
def test_the_first_issuer_answers_at_the_root_of_its_host(worlds: Worlds, name: str) -> None:
    """D62: the account is the first issuer's; a further one has none of them under its own path."""
    made = TwoIssuers(worlds, BELOW, ("current", "legacy"), security_contact="tel:+65-6000-0000")
    assert made.get(f"{ISSUER}/.well-known/{name}").status_code in {200, 303}
    assert made.get(f"{BELOW}/.well-known/{name}").status_code == 404


def test_a_well_known_address_that_is_none_is_not_found(worlds: Worlds) -> None:
    """W3C, Detecting the reliability of HTTP status codes: what cannot be there is 404."""
    unknown = "resource-that-should-not-exist-whose-status-code-should-not-be-200"
    assert worlds.fresh().get(f"{ISSUER}/.well-known/{unknown}").status_code == 404
