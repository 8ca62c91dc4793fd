"""An entity's invitation from its e-mail to the end, in Chromium, with axe on every page (D60, WCAG 2.2 AA)."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect

from corpid.rules.authentication import totp
from tests.browser.stage import Stage, Visitor, follow, shows
from tests.browser.test_demo_access import holds
from tests.enrolment import invited, newcomer
from tests.enrolment.invited import ACCEPTED, ASKS, DECLINED, FIRST, INVITES, PROFILE, Sender
from tests.enrolment.newcomer import NEW

pytestmark = pytest.mark.full

NUMBER: Final = iter(range(1, 100))


def link(stage: Stage) -> str:
    """The link of a new invitation, from the e-mail that the provider sends."""
    stage.postbox.emails.clear()
    number = next(NUMBER)
    waiting = f"00000000-0000-4000-8000-{number:012}"
    address = f"p{number}@harbour.example"
    stage.wait_for(invited.invite(stage.world, waiting, email=address, user_name=f"wei.ling{number}"))
    stage.wait_for(Sender(made=stage.world, postbox=stage.postbox).round())
    return newcomer.link_in(stage.postbox)


@pytest.fixture
def page(chromium: Browser, stage: Stage, visitor: Visitor) -> Page:
    """A tab on whose pages axe can be asked."""
    return visitor.tab()


def test_a_person_with_an_account_signs_in_and_accepts(page: Page, visitor: Visitor, stage: Stage) -> None:
    """D60: and may then choose the entity where they sign in."""
    user_name = stage.somebody()
    follow(page, link(stage))
    shows(page, INVITES)
    holds(page)
    page.get_by_role("button", name="Sign in", exact=True).click()
    visitor.password(page, user_name=user_name)
    visitor.code(page)
    shows(page, ASKS)
    holds(page)
    page.get_by_role("button", name="Accept").click()
    shows(page, ACCEPTED)
    holds(page)
    page.reload()
    shows(page, ACCEPTED)
    page.goto(stage.begin()[0])
    visitor.password(page, user_name=user_name)
    visitor.code(page)
    shows(page, "Choose who you act for")
    expect(page.get_by_text(invited.NAME)).to_be_visible()


def test_a_new_person_sets_up_their_sign_in_and_belongs_to_the_entity(
    page: Page, visitor: Visitor, stage: Stage
) -> None:
    """D60: names, then the enrolment as it is for everybody."""
    follow(page, link(stage))
    shows(page, INVITES)
    page.get_by_role("button", name="Set up your sign-in").click()
    shows(page, PROFILE)
    holds(page)
    page.get_by_label("User name").fill("alice")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".error-summary")).to_contain_text("This user name is taken.")
    expect(page.get_by_label("User name")).to_have_value("alice")
    holds(page)
    page.get_by_label("User name").fill("wei.ling")
    page.get_by_role("button", name="Continue").click()
    shows(page, FIRST)
    page.get_by_label("New password").fill(NEW)
    page.get_by_role("button", name="Use this password").click()
    page.get_by_text("I cannot scan the QR code").click()
    key = page.locator(".key").inner_text().replace(" ", "")
    page.get_by_label("Code", exact=True).fill(totp.code_at(key, stage.world.clock()))
    page.get_by_role("button", name="Continue").click()
    shows(page, "Save your recovery codes")
    page.locator("label[for=kept]").click()
    page.get_by_role("button", name="Finish").click()
    shows(page, ACCEPTED)
    stage.world.clock.pass_(60)
    page.goto(stage.begin()[0])
    visitor.password(page, NEW, user_name="wei.ling")
    visitor.code(page, totp.code_at(key, stage.world.clock()))
    expect(page.get_by_text(invited.NAME).first).to_be_visible()


@pytest.mark.parametrize("visitor", [{"java_script_enabled": False}], indirect=True, ids=["no script"])
def test_an_invitation_is_declined_without_signing_in(visitor: Visitor, stage: Stage) -> None:
    """D60: also without script, by the code of the e-mail."""
    page = visitor.tab()
    url = link(stage)
    follow(page, url)
    shows(page, INVITES)
    page.get_by_text("I do not want this").click()
    page.get_by_role("button", name="Decline").click()
    shows(page, DECLINED)
    page.reload()
    shows(page, DECLINED)
