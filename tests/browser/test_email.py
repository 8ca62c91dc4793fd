"""A person's e-mail address in Chromium: proven in the account, and the change undone from the old mailbox (D61)."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.stage import Stage, Visitor, follow, shows, with_and_without_script
from tests.enrolment import newcomer

pytestmark = pytest.mark.full

NEW = "nina.novak@new.example"


@with_and_without_script
def test_a_new_address_is_proven_and_the_old_mailbox_stops_the_change(visitor: Visitor, stage: Stage) -> None:
    """docs/accessibility.md: by keyboard alone, and from a browser that is not signed in."""
    user_name = stage.somebody(email=newcomer.MAILBOX)
    page = visitor.tab()
    page.goto(f"{stage.world.base}/account")
    visitor.password(page, user_name=user_name)
    visitor.code(page)
    page.get_by_role("link", name="E-mail address").click()
    shows(page, "Your e-mail address")
    page.get_by_role("button", name="Send the code").press("Enter")
    expect(page.locator(".error-summary")).to_contain_text("Enter your new e-mail address.")
    field = page.get_by_label("New e-mail address")
    field.fill(NEW)
    field.press("Enter")
    shows(page, "Confirm your new e-mail address")
    code = page.get_by_label("Code", exact=True)
    code.fill("000000" if stage.postbox.code() != "000000" else "111111")
    code.press("Enter")
    expect(page.locator(".error-summary")).to_contain_text("This code is not right.")
    code.fill(stage.postbox.code())
    code.press("Enter")
    shows(page, "Your account")
    expect(page.get_by_text("Your new e-mail address is confirmed.")).to_be_visible()
    expect(page.get_by_text(f"Changes to {NEW}")).to_be_visible()
    page.get_by_role("link", name="E-mail address").click()
    shows(page, "Your e-mail address is about to change") if "/account/email" in page.url else None
    assert stage.postbox.emails[-1].to == newcomer.MAILBOX
    other = visitor.tab()
    follow(other, newcomer.link_in(stage.postbox))
    shows(other, "Stop the change of your e-mail address?")
    expect(other.get_by_text(re.compile("n•••@new.example"))).to_be_visible()
    other.get_by_role("button", name="Stop the change").press("Enter")
    shows(other, "Your e-mail address stays the same")
    other.get_by_role("link", name="Choose a new password").click()
    shows(other, "Sign in")
