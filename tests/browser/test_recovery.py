"""The way back in, in Chromium: a forgotten password, a lost second factor (D44, D45)."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import expect

from corpid.rules.authentication import totp
from tests.browser.stage import Stage, Visitor, follow, shows, with_and_without_script
from tests.enrolment import newcomer
from tests.enrolment.newcomer import NEW
from tests.sign_in.world import PASSWORD

pytestmark = pytest.mark.full

CONSENT: Final = "Do you agree to share this?"


@with_and_without_script
def test_a_forgotten_password_is_replaced_beside_the_sign_in_that_goes_on(visitor: Visitor, stage: Stage) -> None:
    """D44: in the same tab; the e-mail's link, the second factor, a new password; then the way back to the sign-in."""
    user_name = stage.somebody(email=newcomer.MAILBOX)
    page = visitor.tab()
    page.goto(stage.begin()[0])
    page.get_by_role("link", name="Forgot your password, or cannot sign in?").click()
    shows(page, "Choose a new password")
    page.get_by_role("link", name="Back to signing in to Harbour Board").click()
    shows(page, "Sign in")
    page.get_by_role("link", name="Forgot your password, or cannot sign in?").click()
    asks = page
    asks.get_by_role("button", name="Send the link").click()
    expect(asks.locator(".error-summary")).to_contain_text("Enter your user name.")
    asks.get_by_label("User name").fill(user_name)
    asks.get_by_role("button", name="Send the link").click()
    shows(asks, "Check your e-mail")
    stage.wait_for(stage.world.provider.background_tasks.settle())
    asks = visitor.tab()
    follow(asks, newcomer.link_in(stage.postbox))
    asks.get_by_role("button", name="Continue").click()
    asks.get_by_label("Code", exact=True).fill(stage.code())
    asks.get_by_role("button", name="Continue").click()
    asks.get_by_label("New password").fill("password")
    asks.get_by_role("button", name="Use this password").click()
    expect(asks.locator(".error-summary")).to_be_visible()
    asks.get_by_label("New password").fill(NEW)
    asks.get_by_role("button", name="Use this password").click()
    shows(asks, "Your password has been changed")
    page.get_by_role("link", name="Back to signing in to Harbour Board").click()
    visitor.password(page, NEW, user_name=user_name)
    visitor.code(page)
    shows(page, CONSENT)


@with_and_without_script
def test_a_lost_second_factor_is_replaced_by_a_link_and_the_password(visitor: Visitor, stage: Stage) -> None:
    """D45: the organisation's administrator gives the link."""
    user_name = stage.somebody()
    page = visitor.tab()
    follow(page, stage.wait_for(newcomer.link(stage.world, "second_factor", f"id-{user_name}")))
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Password").fill("wrong horse battery")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".error-summary")).to_be_visible()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Continue").click()
    page.get_by_text("I cannot scan the QR code").click()
    key = page.locator(".key").inner_text().replace(" ", "")
    page.get_by_label("Code", exact=True).fill(totp.code_at(key, stage.world.clock()))
    page.get_by_role("button", name="Continue").click()
    shows(page, "Save your recovery codes")
    code = page.locator(".codes code").first.inner_text()
    page.locator("label[for=kept]").click()
    page.get_by_role("button", name="Finish").click()
    page.get_by_role("link", name="Sign in to your account").wait_for()
    page.goto(stage.begin()[0])
    visitor.password(page, user_name=user_name)
    page.get_by_role("button", name="Use a recovery code").click()
    page.get_by_label("Recovery code").fill(code)
    page.get_by_role("button", name="Continue").click()
    shows(page, CONSENT)
