"""The ways of the second factor in Chromium, with and without JavaScript (D45)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.browser.stage import Stage, Visitor, heading, with_and_without_script
from tests.sign_in import factors

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.full


async def _equip(stage: Stage) -> None:
    user = await stage.world.provider.registry.directory.user(factors.ALICE)
    await stage.world.write(replace(user, email="mei.tan@harbour.example"))
    await factors.recovery(stage.world)


def past_password(visitor: Visitor, stage: Stage) -> Page:
    stage.wait_for(_equip(stage))
    page = visitor.tab()
    page.goto(stage.begin()[0])
    visitor.password(page)
    page.get_by_role("heading", level=1, name="Enter your 6-digit code").wait_for()
    return page


@with_and_without_script
def test_a_code_by_email_is_asked_for_and_typed(visitor: Visitor, stage: Stage) -> None:
    """D45."""
    page = past_password(visitor, stage)
    page.get_by_role("button", name="Send me a code by e-mail").click()
    page.get_by_role("heading", level=1, name="Enter the code we sent you").wait_for()
    assert page.get_by_text("m•••@harbour.example").is_visible()
    assert page.get_by_label("Code", exact=True).get_attribute("autocomplete") == "one-time-code"
    visitor.code(page, stage.postbox.code())
    page.get_by_role("heading", level=1, name="Choose who you act for").wait_for()


@with_and_without_script
def test_a_recovery_code_is_typed_in_its_own_field(visitor: Visitor, stage: Stage) -> None:
    """D45: which takes letters."""
    page = past_password(visitor, stage)
    page.get_by_role("button", name="Use a recovery code").click()
    page.get_by_role("heading", level=1, name="Enter a recovery code").wait_for()
    page.get_by_label("Recovery code").fill(factors.CODES[0])
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("heading", level=1, name="Choose who you act for").wait_for()


def test_enter_in_the_field_sends_the_code_and_not_a_mail(visitor: Visitor, stage: Stage) -> None:
    """WCAG 3.2.2: the buttons of the other ways are a form of their own."""
    page = past_password(visitor, stage)
    before = len(stage.postbox.emails)
    page.get_by_label("Code", exact=True).fill(stage.code())
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name="Choose who you act for").wait_for()
    assert (len(stage.postbox.emails), heading(page)) == (before, "Choose who you act for")
