"""The sign-in that the portal asks for again, in Chromium: Cancel, Back, passkeys (D46, D54)."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.stage import Stage, Visitor, shows, with_and_without_script
from tests.browser.test_passkeys import BUTTON, Holder
from tests.manage.scene import appoint
from tests.sign_in.world import PASSWORD

pytestmark = pytest.mark.full

ACME = "200000010A"
CONFIRM = "Confirm it is you, Alice Tan"


def in_portal(visitor: Visitor, stage: Stage, page: str) -> Page:
    """A tab in which Alice, who administers one organisation, is at a page of the portal."""
    stage.wait_for(appoint(stage.world, ACME))
    tab = visitor.tab()
    tab.goto(f"{stage.world.base}/manage/{page}")
    visitor.password(tab)
    visitor.code(tab)
    tab.wait_for_url(f"**/manage/{page}")
    return tab


@with_and_without_script
def test_cancel_leads_back_to_the_list_from_which_a_form_was_to_be_opened(visitor: Visitor, stage: Stage) -> None:
    """D54: with what was searched for; Back then leads to no second sign-in."""
    page = in_portal(visitor, stage, "people?search=alice")
    stage.world.clock.pass_(601)
    page.get_by_role("link", name="Invite a person").first.click()
    shows(page, CONFIRM)
    expect(page.get_by_label("User name")).to_have_value("alice")
    expect(page.get_by_label("User name")).not_to_be_editable()
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_url("**/manage/people?search=alice")
    page.go_back()
    shows(page, "This sign-in is finished")
    page.get_by_role("link", name="Return to CorpID").click()
    page.wait_for_url("**/manage/people?search=alice")


@with_and_without_script
def test_cancel_shows_what_was_typed_and_it_is_there_after_the_sign_in_too(visitor: Visitor, stage: Stage) -> None:
    """D54."""
    page = in_portal(visitor, stage, "invite")
    page.get_by_label("Name").fill("Grace Ho")
    page.get_by_label("E-mail address").fill("grace@example.com")
    stage.world.clock.pass_(901)
    page.get_by_role("button", name="Send invitation").click()
    shows(page, CONFIRM)
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("You did not sign in again, so nothing has changed.").wait_for()
    page.reload()
    expect(page.get_by_label("Name")).to_have_value("Grace Ho")
    page.get_by_role("button", name="Send invitation").click()
    shows(page, CONFIRM)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Continue").click()
    visitor.code(page)
    shows(page, "Invite a person")
    expect(page.get_by_label("Name")).to_have_value("Grace Ho")


def test_the_passkey_that_leads_is_the_persons_own(visitor: Visitor, stage: Stage) -> None:
    """D46, D54: Chromium shows none but those that the page names."""
    page = in_portal(visitor, stage, "people")
    device = Holder(page)
    stage.wait_for(stage.world.person("rina", name="Rina"))
    device.holds(stage, "id-rina")
    device.holds(stage)
    stage.world.clock.pass_(601)
    page.goto(f"{stage.world.base}/manage/invite")
    shows(page, CONFIRM)
    page.get_by_role("button", name=BUTTON).click()
    shows(page, "Invite a person")
