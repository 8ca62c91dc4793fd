"""Setting up one's sign-in in Chromium (D45, D46)."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from corpid.rules.authentication import totp
from corpid.rules.limits import ENROLMENT_SECONDS
from tests.browser.stage import WITHOUT_SCRIPT, Stage, Visitor, follow, shows
from tests.browser.test_passkeys import NO_AUTOFILL, NO_PASSKEYS, Holder
from tests.enrolment import newcomer
from tests.enrolment.newcomer import NEW, SET_UP

pytestmark = pytest.mark.full

NARROW = {"viewport": {"width": 320, "height": 640}}


def invited(stage: Stage, user_name: str) -> str:
    """The link of a new person."""

    async def made() -> str:
        await newcomer.nina(stage.world, user_name)
        return await newcomer.link(stage.world, user_id=f"id-{user_name}")

    return stage.wait_for(made())


def opened(visitor: Visitor, stage: Stage, user_name: str, *scripts: str) -> tuple[Page, Holder]:
    """At the first step, with a device."""
    page = visitor.tab()
    for script in scripts:
        page.add_init_script(script)
    device = Holder(page)
    follow(page, invited(stage, user_name))
    shows(page, "Set up your sign-in")
    page.get_by_role("button", name="Continue").click()
    return page, device


def _app(page: Page, stage: Stage) -> str:
    """Reads the key beside the picture, and types the code."""
    picture = page.get_by_role("img", name="QR code for your authenticator app")
    expect(picture).to_have_js_property("complete", value=True)
    assert picture.evaluate("image => image.naturalWidth") > 0
    page.get_by_text("I cannot scan the QR code").click()
    key = page.locator(".key").inner_text().replace(" ", "")
    assert f"secret={key}" in (page.get_by_role("link", name="Open the app").get_attribute("href") or "")
    page.get_by_label("Code", exact=True).fill(totp.code_at(key, stage.world.clock()))
    page.get_by_role("button", name="Continue").click()
    return key


def test_the_end_is_announced_and_more_time_keeps_what_was_typed(visitor: Visitor, stage: Stage) -> None:
    """WCAG 2.2.1: as in the sign-in."""
    page, _ = opened(visitor, stage, "nina9")
    page.clock.install()
    page.reload()
    page.get_by_label("New password").fill(NEW)
    page.clock.fast_forward((ENROLMENT_SECONDS - 100) * 1000)
    warning = page.locator("#time-warning")
    warning.get_by_text("About 2 minutes left on this page.").wait_for()
    warning.get_by_role("button", name="I need more time").click()
    expect(warning).to_be_empty()
    page.get_by_role("button", name="Use this password").click()
    shows(page, "Set up your second step")


def test_a_newcomer_makes_a_passkey_and_signs_in_with_it_at_once(visitor: Visitor, stage: Stage) -> None:
    """D46: two clicks."""
    page, _ = opened(visitor, stage, "nina1", NO_AUTOFILL)
    page.get_by_role("button", name="Set up a passkey").click()
    page.get_by_role("heading", level=1, name=SET_UP).wait_for()
    page.goto(stage.begin()[0])
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.get_by_role("heading", level=1, name="Do you agree to share this?").wait_for()


def test_who_cancels_the_passkey_can_choose_a_password(visitor: Visitor, stage: Stage) -> None:
    """D46: with a calm sentence."""
    page, device = opened(visitor, stage, "nina2")
    device.is_somebody_else()
    page.get_by_role("button", name="Set up a passkey").click()
    page.locator("[aria-live]", has_text="No passkey was created.").wait_for()
    page.get_by_label("New password").fill(NEW)
    page.get_by_role("button", name="Use this password").click()
    page.get_by_role("heading", level=1, name="Set up your second step").wait_for()


def test_a_device_that_has_a_passkey_already_says_so(visitor: Visitor, stage: Stage) -> None:
    """WebAuthn §7.1: excludeCredentials"""
    page, _ = opened(visitor, stage, "nina3")
    page.get_by_role("button", name="Set up a passkey").click()
    page.get_by_role("heading", level=1, name=SET_UP).wait_for()
    follow(page, stage.wait_for(newcomer.link(stage.world, user_id="id-nina3")))
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Set up a passkey").click()
    page.locator("[aria-live]", has_text="already has a passkey").wait_for()


def test_a_newcomer_without_app_and_passkey_sets_up_codes_by_email(visitor: Visitor, stage: Stage) -> None:
    """D45: and signs in with one."""
    page, _ = opened(visitor, stage, "nina6", NO_PASSKEYS)
    page.get_by_label("New password").fill(NEW)
    page.get_by_role("button", name="Use this password").click()
    page.get_by_role("button", name="Use codes by e-mail instead").click()
    shows(page, "Enter the code we sent you")
    page.get_by_label("Code", exact=True).fill(stage.postbox.code())
    page.get_by_role("button", name="Continue").click()
    page.locator("label[for=kept]").click()
    page.get_by_role("button", name="Finish").click()
    shows(page, SET_UP)
    page.goto(stage.begin()[0])
    page.get_by_label("User name").fill("nina6")
    page.get_by_label("Password").fill(NEW)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Send the code").click()
    page.get_by_label("Code", exact=True).fill(stage.postbox.code())
    page.get_by_role("button", name="Continue").click()
    shows(page, "Do you agree to share this?")


@pytest.mark.parametrize(
    "visitor",
    [WITHOUT_SCRIPT, pytest.param(NARROW, marks=pytest.mark.full)],
    indirect=True,
    ids=["without script", "narrow"],
)
def test_a_newcomer_sets_up_password_app_and_codes(
    visitor: Visitor, stage: Stage, request: pytest.FixtureRequest
) -> None:
    """D44, D45: and signs in; nothing scrolls sideways."""
    user_name = "nina4" if "script" in request.node.callspec.id else "nina5"
    page, _ = opened(visitor, stage, user_name, NO_PASSKEYS)
    expect(page.get_by_label("User name")).to_have_value(user_name)
    expect(page.get_by_role("button", name="Set up a passkey")).to_have_count(0)
    page.get_by_label("New password").fill(NEW)
    page.get_by_role("button", name="Use this password").click()
    key = _app(page, stage)
    expect(page.locator(".codes li")).to_have_count(10)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Finish").click()
    page.get_by_role("link", name="Save your codes first").wait_for()
    page.locator("label[for=kept]").click()
    page.get_by_role("button", name="Finish").click()
    shows(page, SET_UP)
    stage.world.clock.pass_(60)
    page.goto(stage.begin()[0])
    page.get_by_label("User name").fill(user_name)
    page.get_by_label("Password").fill(NEW)
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Code", exact=True).fill(totp.code_at(key, stage.world.clock()))
    page.get_by_role("button", name="Continue").click()
    shows(page, "Do you agree to share this?")
