"""The account in Chromium, and the search among one's entities as it is typed (D17, D46)."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.stage import Stage, Visitor, shows
from tests.browser.test_passkeys import NO_AUTOFILL, Holder

pytestmark = pytest.mark.full


def test_a_passkey_is_made_in_the_account_used_at_once_renamed_and_removed(visitor: Visitor, stage: Stage) -> None:
    """D46: from the footer of a page to the passkey, and back in with it."""
    page = visitor.tab()
    page.add_init_script(NO_AUTOFILL)
    Holder(page)
    page.goto(stage.world.base)
    page.get_by_role("link", name="Your account").click()
    visitor.password(page)
    visitor.code(page)
    page.wait_for_url("**/account")
    page.get_by_role("link", name="Passkeys").click()
    page.get_by_role("link", name="Add a passkey").click()
    page.get_by_role("button", name="Create a passkey").click()
    page.wait_for_url("**/account/passkeys?saved=passkey-added")
    expect(page.get_by_text("Your passkey has been added.")).to_be_visible()
    made = page.get_by_role("link", name=re.compile("Chrome on Linux"))
    page.goto(f"{stage.world.base}/sign-out")
    page.get_by_role("button", name="Sign out").click()
    page.goto(f"{stage.world.base}/account/passkeys")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url("**/account/passkeys")
    expect(page.get_by_text("Last used")).to_be_visible()
    made.click()
    page.get_by_label("Name").fill("Work laptop")
    page.get_by_role("button", name="Save name").click()
    page.get_by_role("link", name="Work laptop").click()
    page.get_by_role("button", name="Remove this passkey").click()
    expect(page.get_by_text("You do not have a passkey yet.")).to_be_visible()


def test_the_prompt_for_a_passkey_goes_when_the_page_does(visitor: Visitor, stage: Stage) -> None:
    """D46: nobody answers it for nothing."""
    page = visitor.tab()
    page.add_init_script(
        "navigator.credentials.create = ({publicKey}) => { window.asked = publicKey.timeout; return new Promise(() => {}) }"
    )
    page.goto(f"{stage.world.base}/account/new-passkey")
    visitor.password(page)
    visitor.code(page)
    page.wait_for_url("**/account/new-passkey")
    page.evaluate("document.getElementById('time-limit').dataset.until = Date.now() + 20000")
    page.get_by_role("button", name="Create a passkey").click()
    assert 0 < page.evaluate("window.asked") <= 20000


def test_a_page_of_the_account_is_given_more_time_without_losing_what_is_on_it(visitor: Visitor, stage: Stage) -> None:
    """WCAG 2.2.1: the same codes stand there, the box stays ticked, and the form is taken."""
    page = visitor.tab()
    page.goto(f"{stage.world.base}/account/codes")
    visitor.password(page)
    visitor.code(page)
    page.wait_for_url("**/account/codes")
    page.clock.install()
    page.reload()
    codes = page.locator("ol.codes").inner_text()
    page.locator("label[for=kept]").click()
    page.clock.fast_forward((int(page.locator("#time-limit").get_attribute("data-seconds") or 0) - 60) * 1000)
    page.locator("#time-limit").get_by_role("button", name="I need more time").click()
    expect(page.locator("#time-limit")).to_be_focused()
    assert page.locator("ol.codes").inner_text() == codes
    expect(page.get_by_label("I have saved these codes.")).to_be_checked()
    page.get_by_role("button", name="Finish").click()
    expect(page.get_by_text("10 codes left")).to_be_visible()


def test_ones_data_are_downloaded_as_a_file_and_deletion_is_asked_for(visitor: Visitor, stage: Stage) -> None:
    """D61: over a real connection, without a script; the page stays."""
    page = visitor.tab()
    page.goto(f"{stage.world.base}/account/data")
    visitor.password(page)
    visitor.code(page)
    page.wait_for_url("**/account/data")
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Download my data").click()
    file = downloading.value
    assert file.suggested_filename.startswith("my-data-")
    assert json.loads(file.path().read_bytes())["complete"] is True
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("link", name="Delete your account").click()
    page.get_by_role("button", name="Ask to delete my account").click()
    expect(page.get_by_text("Your request to delete your account has been received.")).to_be_visible()


def test_entities_are_found_while_a_person_types(visitor: Visitor, stage: Stage) -> None:
    """D17: the number found is said to who cannot see it; the chosen one stays chosen; the field keeps the focus."""
    page = visitor.tab()
    page.goto(stage.begin()[0])
    visitor.password(page)
    visitor.code(page)
    shows(page, "Choose who you act for")
    field = page.get_by_label("Search by name or number")
    field.press_sequentially("works 19")
    expect(page.locator("#results input[type=radio]")).to_have_count(1)
    expect(page.locator("#found")).to_have_text("1 found")
    expect(field).to_be_focused()
    page.locator("input[value='200000019A'] + label").click()
    field.fill("harbour")
    expect(page.locator("#results input[type=radio]")).to_have_count(10)
    expect(page.locator("input[value='200000019A']")).to_be_checked()
    field.fill("nobody at all")
    expect(page.locator("#found")).to_contain_text("No results for")
    field.fill("")
    expect(page.locator("#results input[type=radio]")).not_to_have_count(0)
    visitor.entity(page, "200000012A")
    shows(page, "Do you agree to share this?")
