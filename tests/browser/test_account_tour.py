"""A tour of the account in Chromium, with and without JavaScript: every page of it that needs no passkey (D30, D44, D45)."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect

from corpid.rules.authentication import totp
from tests.browser.stage import Stage, Visitor, shows, with_and_without_script
from tests.enrolment.newcomer import NEW

pytestmark = pytest.mark.full

UP: Final = "Your account"


@pytest.fixture
def person(stage: Stage) -> str:
    """The user name of somebody who belongs to this test."""
    return stage.somebody()


def at_account(visitor: Visitor, stage: Stage, person: str) -> Page:
    """A tab in which this person has signed in to the account."""
    page = visitor.tab()
    page.goto(f"{stage.world.base}/account")
    visitor.password(page, user_name=person)
    visitor.code(page)
    shows(page, "Your account")
    return page


def opens(page: Page, name: str) -> None:
    page.locator(".sections").get_by_role("link", name=name).click()


def saved(page: Page, change: str) -> None:
    """The account's first page names what was changed."""
    expect(page.locator(".saved", has_text=change)).to_be_visible()
    shows(page, "Your account")


@with_and_without_script
def test_password_app_and_recovery_codes_are_changed_and_work_at_once(
    visitor: Visitor, stage: Stage, person: str
) -> None:
    """D44, D45: what is wrong is said beside its field; what was refused changes nothing."""
    page = at_account(visitor, stage, person)
    opens(page, "Password")
    page.get_by_label("New password").fill("short")
    page.get_by_role("button", name="Use this password").click()
    expect(page.locator(".error-summary")).to_be_visible()
    page.get_by_label("New password").fill(NEW)
    page.get_by_role("button", name="Use this password").click()
    saved(page, "Your password has been changed.")
    opens(page, "Authenticator app")
    page.get_by_text("I cannot scan the QR code").click()
    key = page.locator(".key").inner_text().replace(" ", "")
    page.get_by_label("Code", exact=True).fill(totp.code_at(key, stage.world.clock()))
    page.get_by_role("button", name="Continue").click()
    saved(page, "Your authenticator app has been set up.")
    opens(page, "Recovery codes")
    code = page.locator(".codes code").first.inner_text()
    page.get_by_role("button", name="Finish").click()
    expect(page.locator(".error-summary")).to_be_visible()
    assert page.locator(".codes code").first.inner_text() == code
    page.locator("label[for=kept]").click()
    page.get_by_role("button", name="Finish").click()
    saved(page, "Your new recovery codes now work.")
    opens(page, "Recovery codes")
    page.get_by_role("link", name="Remove your current codes").click()
    page.get_by_role("link", name=UP).first.click()
    page.get_by_role("link", name="Sign out").click()
    page.get_by_role("button", name="Sign out").click()
    shows(page, "You are signed out")
    page.goto(f"{stage.world.base}/account")
    visitor.password(page, NEW, user_name=person)
    page.get_by_role("button", name="Use a recovery code").click()
    page.get_by_label("Recovery code").fill(code)
    page.get_by_role("button", name="Continue").click()
    shows(page, "Your account")


@with_and_without_script
def test_the_only_way_in_is_not_removed(visitor: Visitor, stage: Stage, person: str) -> None:
    """D45: it is asked first, and then said why not."""
    page = at_account(visitor, stage, person)
    opens(page, "Authenticator app")
    page.get_by_role("link", name="Remove your current app").click()
    shows(page, "Remove the authenticator app?")
    page.get_by_role("button", name="Remove the app").click()
    expect(page.locator(".error-summary")).to_be_visible()


@with_and_without_script
def test_a_person_sees_where_they_are_signed_in_ends_it_and_chooses_a_language(
    visitor: Visitor, stage: Stage, person: str, chromium: Browser
) -> None:
    """D30: device, time, service and entity of each sign-in; the browser that was ended has to sign in again."""
    with chromium.new_context() as context:
        elsewhere = Visitor(context=context, stage=stage)
        other = at_account(elsewhere, stage, person)
        service = elsewhere.tab()
        service.goto(stage.begin()[0])
        elsewhere.password(service, user_name=person)
        elsewhere.code(service)
        elsewhere.agree(service)
        elsewhere.back(service)
        page = at_account(visitor, stage, person)
        opens(page, "Your last sign-ins")
        line = page.locator(".line").filter(has_text="Harbour Board")
        assert "For Bobs Bakery" in line.inner_text()
        assert "Chrome on Linux" in line.inner_text()
        page.get_by_role("link", name=UP).first.click()
        opens(page, "Where you are signed in")
        expect(page.locator(".line")).to_have_count(2)
        page.get_by_role("button", name="Sign out there").click()
        expect(page.locator(".line")).to_have_count(1)
        other.reload()
        shows(other, "Sign in")
    page.get_by_role("link", name=UP).first.click()
    opens(page, "Language")
    page.get_by_label("Bahasa Melayu").check(force=True)
    page.locator("main .actions button").click()
    expect(page.locator("html[lang=ms]")).to_be_visible()
    page.locator(".saved").wait_for()
