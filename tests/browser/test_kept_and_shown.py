"""A password that is shown while it is typed, and recovery codes that are copied, downloaded or printed (D36, D45)."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.stage import WITHOUT_SCRIPT, Stage, Visitor
from tests.sign_in.world import PASSWORD

pytestmark = pytest.mark.full

ON_A_PHONE = pytest.mark.parametrize("visitor", [{"has_touch": True, "is_mobile": True}], indirect=True, ids=["phone"])


def at(visitor: Visitor, stage: Stage, path: str) -> Page:
    page = visitor.tab()
    page.goto(f"{stage.world.base}/account/{path}")
    visitor.password(page)
    visitor.code(page)
    page.wait_for_url(f"**/account/{path}")
    return page


def test_a_password_is_shown_hidden_and_sent_hidden(visitor: Visitor, stage: Stage) -> None:
    """WCAG 3.3.8: what was typed can be checked; the button says what it does next, and the state is announced."""
    page = visitor.tab()
    page.goto(stage.begin()[0])
    field = page.get_by_label("Password", exact=True)
    field.fill("correct horse batery")
    page.get_by_role("button", name="Show password").click()
    expect(field).to_have_attribute("type", "text")
    expect(page.locator("[aria-live=polite]", has_text="Your password is visible.")).to_have_count(1)
    page.get_by_role("button", name="Hide password").click()
    expect(field).to_have_attribute("type", "password")
    page.get_by_role("button", name="Show password").click()
    field.fill(PASSWORD)
    page.evaluate("addEventListener('submit', (event) => { event.preventDefault(); window.sentAs = password.type })")
    page.get_by_role("button", name="Continue").click()
    assert page.evaluate("window.sentAs") == "password"


@pytest.mark.parametrize("visitor", [WITHOUT_SCRIPT], indirect=True, ids=["no script"])
def test_without_script_there_is_no_button_that_does_nothing(visitor: Visitor, stage: Stage) -> None:
    page = visitor.tab()
    page.goto(stage.begin()[0])
    expect(page.get_by_role("button", name="Show password")).to_be_hidden()
    page = at(visitor, stage, "codes")
    for name in ("Copy", "Download", "Print"):
        expect(page.get_by_role("button", name=name)).to_be_hidden()


def test_recovery_codes_are_copied_downloaded_and_printed(visitor: Visitor, stage: Stage) -> None:
    """D45: all of them, one a line; the file says whose they are."""
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = at(visitor, stage, "codes")
    shown = [code.strip() for code in page.locator(".codes code").all_inner_texts()]
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_text("The codes are copied.")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").split() == shown
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "recovery-codes.txt"
    title, _, *codes = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert title.startswith("Recovery codes")
    assert title.endswith("CorpID")
    assert codes == shown
    page.evaluate("void (window.print = () => { window.printed = true })")
    page.get_by_role("button", name="Print").click()
    assert page.evaluate("window.printed") is True


def test_a_browser_that_cannot_copy_says_what_else_to_do(visitor: Visitor, stage: Stage) -> None:
    page = at(visitor, stage, "codes")
    page.evaluate("void (navigator.clipboard.writeText = () => Promise.reject(new Error('refused')))")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_text("Select them, or print the page.")).to_be_visible()


@ON_A_PHONE
def test_on_a_phone_a_button_opens_the_app_before_the_picture(visitor: Visitor, stage: Stage) -> None:
    """D45: a phone cannot scan its own screen."""
    page = at(visitor, stage, "app")
    button = page.get_by_role("link", name="Open the app on this device")
    expect(button).to_be_visible()
    assert (button.get_attribute("href") or "").startswith("otpauth://totp/")
    picture = page.locator("img.qr").bounding_box()
    place = button.bounding_box()
    assert place is not None
    assert picture is not None
    assert place["y"] < picture["y"]
    assert place["height"] >= 44


def test_elsewhere_the_picture_comes_first(visitor: Visitor, stage: Stage) -> None:
    """D45."""
    page = at(visitor, stage, "app")
    expect(page.locator(".on-phone a")).to_be_hidden()
    expect(page.locator("img.qr")).to_be_visible()
