"""The offer of a passkey in Chromium, with its virtual authenticator (WebAuthn Level 3, D46)."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser.stage import WITHOUT_SCRIPT, Stage, Visitor, shows
from tests.browser.test_passkeys import BUTTON, NO_AUTOFILL, NO_PASSKEYS, Holder, opened

pytestmark = pytest.mark.full

OFFER: Final = "Sign in with a passkey next time?"
CONSENT: Final = "Do you agree to share this?"


def signed_in(visitor: Visitor, stage: Stage, page: Page, url: str, user_name: str) -> None:
    page.goto(url)
    visitor.password(page, user_name=user_name)
    visitor.code(page)


def test_a_person_creates_a_passkey_between_the_code_and_the_way_back(visitor: Visitor, stage: Stage) -> None:
    """D46: one that the next sign-in takes; who changes their mind at the device's prompt stays on the page."""
    page, device, url = opened(visitor, stage, NO_AUTOFILL)
    user_name = stage.somebody()
    signed_in(visitor, stage, page, url, user_name)
    shows(page, OFFER)
    device.is_somebody_else()
    page.get_by_role("button", name="Create a passkey").click()
    page.locator("[aria-live]", has_text="No passkey was created.").wait_for()
    device.is_the_owner()
    page.get_by_role("button", name="Create a passkey").click()
    shows(page, CONSENT)
    visitor.agree(page)
    assert "code" in visitor.back(page)
    page.goto(stage.begin()[0])
    page.get_by_role("button", name=BUTTON).click()
    shows(page, CONSENT)


def test_not_now_is_one_press_and_is_remembered(visitor: Visitor, stage: Stage) -> None:
    """In every browser of this person."""
    page, _, url = opened(visitor, stage, NO_AUTOFILL)
    user_name = stage.somebody()
    signed_in(visitor, stage, page, url, user_name)
    shows(page, OFFER)
    page.reload()
    page.get_by_role("button", name="Not now").click()
    shows(page, CONSENT)
    signed_in(visitor, stage, page, stage.begin()[0], user_name)
    shows(page, CONSENT)


@pytest.mark.parametrize(
    ("visitor", "script"),
    [({}, NO_PASSKEYS), ({}, ""), (WITHOUT_SCRIPT, "")],
    indirect=["visitor"],
    ids=["no WebAuthn", "no authenticator", "no script"],
)
def test_where_none_can_be_created_the_page_is_never_in_the_way(visitor: Visitor, stage: Stage, script: str) -> None:
    page = visitor.tab()
    if script:
        Holder(page)
        page.add_init_script(script)
    signed_in(visitor, stage, page, stage.begin()[0], stage.somebody())
    shows(page, CONSENT)
    expect(page.get_by_text("passkey")).to_have_count(0)
