"""The registration page of a demo in Chromium: checks while one types, copies with one click (D66)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from joserfc.jwk import ECKey
from playwright.sync_api import Page, expect

from tests.browser.test_demo import demonstrated, page

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["page"]


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the page, below the one that the demo prints."""
    with demonstrated(tmp_path_factory.mktemp("demo")) as printed:
        found = re.search(r"Developer\s+(http\S+)", printed)
        assert found, printed
        yield f"{found[1]}/clients"


def key(use: str, *, private: bool = False) -> dict[str, Any]:
    return {**ECKey.generate_key("P-256").as_dict(private=private), "use": use, "kid": use}


@pytest.mark.full
def test_mistakes_are_named_while_one_types_and_the_command_is_copied(clients: str, page: Page) -> None:
    """D66: the same sentences as of the Check button; a private key leaves the field at once."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(clients)
    page.get_by_role("link", name="Register a client").click()
    page.fill("#client_id", "my-rp")
    page.fill("#redirect_uris", "http://rp.example/cb")
    expect(page.locator("#found-redirect_uris")).to_contain_text("begin with https://")
    expect(page.locator("#redirect_uris")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#name-error")).to_have_count(0)  # nobody has been there yet
    page.fill("#redirect_uris", "http://localhost:8410/callback")
    expect(page.locator("#found-redirect_uris")).to_contain_text("are two addresses")
    expect(page.locator("#redirect_uris")).not_to_have_attribute("aria-invalid", "true")
    private = key("sig", private=True)
    page.fill("#jwks", json.dumps({"keys": [private, key("enc")]}))
    expect(page.locator("#found-jwks")).to_contain_text("This was a private key")
    assert private["d"] not in page.input_value("#jwks")
    page.fill("#name", "My RP")
    page.fill("#redirect_uris", "http://127.0.0.1:8410/callback")
    expect(page.locator("#found-redirect_uris")).to_be_empty()
    page.get_by_role("button", name="Register", exact=True).click()
    expect(page.get_by_text("The client is registered")).to_be_visible()
    page.get_by_role("button", name="Copy Node").click()
    expect(page.get_by_text("Copied: Node")).to_be_visible()
    assert "CLIENT_ID=my-rp" in page.evaluate("navigator.clipboard.readText()")
