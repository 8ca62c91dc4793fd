"""Reload, Back, tabs and double clicks, as Chromium really does them (D15, D34)."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from corpid.rules.limits import INTERACTION_SECONDS
from tests.browser.stage import WITHOUT_SCRIPT, Stage, Visitor, heading, shows, with_and_without_script

pytestmark = pytest.mark.full

"""without script they are those of tests/sign_in, whose browser has none"""


@with_and_without_script
def test_reload_shows_the_same_page_also_after_an_error(visitor: Visitor, stage: Stage) -> None:
    """D15, D35: Chromium sends the form again when a page with an error is reloaded."""
    url, rp = stage.begin()
    page = visitor.tab()
    page.goto(url)
    page.reload()
    shows(page, "Sign in")
    visitor.password(page, "wrong horse battery")
    page.locator(".error-summary").wait_for()
    page.reload()
    shows(page, "Sign in")
    visitor.password(page)
    shows(page, "Enter your 6-digit code")
    page.reload()
    visitor.code(page)
    shows(page, "Choose who you act for")
    page.reload()
    visitor.entity(page)
    shows(page, "Do you agree to share this?")
    page.reload()
    visitor.agree(page)
    visitor.back(page)
    assert stage.redeem(rp, page.url) == "200000001A"


@with_and_without_script
def test_back_leads_to_the_page_that_is_current(visitor: Visitor, stage: Stage) -> None:
    """D15: whatever the browser shows from its memory, the next click leads on."""
    url, rp = stage.begin()
    page = visitor.tab()
    page.goto(url)
    visitor.password(page)
    shows(page, "Enter your 6-digit code")
    visitor.code(page)
    shows(page, "Choose who you act for")
    page.go_back()
    page.go_back()
    if heading(page) == "Sign in":
        visitor.password(page)
    shows(page, "Choose who you act for")
    visitor.entity(page)
    visitor.agree(page)
    visitor.back(page)
    assert stage.redeem(rp, page.url) == "200000001A"


@with_and_without_script
def test_back_from_the_relying_party_does_not_strand_the_person(visitor: Visitor, stage: Stage) -> None:
    """D15: it leads to the same callback again, or to a page that says that the sign-in is finished."""
    url, _ = stage.begin()
    page = visitor.tab()
    page.goto(url)
    visitor.password(page)
    visitor.code(page)
    visitor.entity(page)
    visitor.agree(page)
    first = visitor.back(page)
    page.go_back()
    page.wait_for_load_state()
    if page.url.startswith(stage.callback):
        assert visitor.back(page) == first
        return
    page.goto(page.url)
    shows(page, "This sign-in is finished")
    page.get_by_role("link", name="Return to Harbour Board").click()
    assert visitor.back(page)["code"] == first["code"]


@with_and_without_script
def test_two_tabs_with_two_relying_parties_go_on_in_turn(visitor: Visitor, stage: Stage) -> None:
    """D15, D34."""
    begun = [stage.begin("rp1"), stage.begin("rp2")]
    tabs = [visitor.tab(), visitor.tab()]
    for page, (url, _) in zip(tabs, begun, strict=True):
        page.goto(url)
    for name, page in zip(("Harbour Board", "Ministry of Trade"), tabs, strict=True):
        assert page.get_by_text(name).first.is_visible()
    for step, after in (
        (visitor.password, "Enter your 6-digit code"),
        (visitor.code, "Choose who you act for"),
        (visitor.entity, "Do you agree to share this?"),
    ):
        for page in tabs:
            step(page)
            shows(page, after)
    for page, (_, rp) in zip(tabs, begun, strict=True):
        visitor.agree(page)
        visitor.back(page)
        assert stage.redeem(rp, page.url) == "200000001A"


@with_and_without_script
def test_a_second_tab_with_the_same_request_joins_and_ends_well(visitor: Visitor, stage: Stage) -> None:
    """D15: the tab that comes too late says so and leads back."""
    url, rp = stage.begin()
    first, second = visitor.tab(), visitor.tab()
    first.goto(url)
    second.goto(url)
    for step in (visitor.password, visitor.code, visitor.entity):
        step(first)
    shows(first, "Do you agree to share this?")
    second.reload()
    shows(second, "Do you agree to share this?")
    visitor.agree(first)
    visitor.back(first)
    visitor.agree(second)
    visitor.back(second)
    assert second.url == first.url
    assert stage.redeem(rp, first.url) == "200000001A"


@with_and_without_script
def test_a_double_click_on_the_last_button_gives_one_code(visitor: Visitor, stage: Stage) -> None:
    """D15, D37."""
    before = stage.completed()
    url, rp = stage.begin()
    page = visitor.tab()
    page.goto(url)
    for step in (visitor.password, visitor.code, visitor.entity):
        step(page)
    page.get_by_role("button", name="Agree and continue").dblclick()
    visitor.back(page)
    assert stage.redeem(rp, page.url) == "200000001A"
    assert stage.completed() == before + 1


@with_and_without_script
def test_a_double_click_on_every_button_leads_through(visitor: Visitor, stage: Stage) -> None:
    """D15, D34: also where the first click replaces the cookie and its answer is thrown away."""
    url, rp = stage.begin()
    page = visitor.tab()
    page.goto(url)
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Continue").dblclick()
    page.get_by_label("Code", exact=True).fill(stage.code())
    page.get_by_role("button", name="Continue").dblclick()
    shows(page, "Choose who you act for")
    visitor.entity(page)
    visitor.agree(page)
    visitor.back(page)
    assert stage.redeem(rp, page.url) == "200000001A"


def test_more_time_is_given_without_losing_what_was_typed(visitor: Visitor, stage: Stage) -> None:
    """D15, WCAG 2.2.1: the script asks in the background; the form that is shown still works."""
    page = visitor.tab()
    page.clock.install()
    page.goto(stage.begin()[0])
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill("correct horse battery")
    expect(page.locator("#time-limit")).to_be_hidden()
    until = page.locator("#time-limit strong").text_content() or ""
    stage.world.clock.pass_(INTERACTION_SECONDS - 10)
    page.clock.fast_forward((INTERACTION_SECONDS - 10) * 1000)
    page.locator("#time-limit").get_by_role("button", name="I need more time").click()
    expect(page.locator("#time-limit strong")).not_to_have_text(until)
    assert page.get_by_label("User name").input_value() == "alice"
    stage.world.clock.pass_(60)
    page.get_by_role("button", name="Continue").click()
    shows(page, "Enter your 6-digit code")


@pytest.mark.parametrize("visitor", [WITHOUT_SCRIPT], indirect=True, ids=["no script"])
def test_more_time_is_given_without_script(visitor: Visitor, stage: Stage) -> None:
    """D15."""
    page = visitor.tab()
    page.goto(stage.begin()[0])
    stage.world.clock.pass_(INTERACTION_SECONDS - 10)
    page.get_by_role("button", name="I need more time").click()
    stage.world.clock.pass_(60)
    visitor.password(page)
    shows(page, "Enter your 6-digit code")


@with_and_without_script
def test_an_expired_sign_in_leads_back(visitor: Visitor, stage: Stage) -> None:
    """D15, D16."""
    url, rp = stage.begin()
    page = visitor.tab()
    page.goto(url)
    stage.world.clock.pass_(INTERACTION_SECONDS)
    visitor.password(page)
    shows(page, "This sign-in has expired")
    page.get_by_role("link", name="Return to Harbour Board").click()
    answer = visitor.back(page)
    assert (answer["error"], answer["state"]) == ("invalid_request_uri", rp.sign_in.state)
