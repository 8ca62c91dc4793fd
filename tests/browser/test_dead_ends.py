"""Dead ends in Chromium: each says what happened, for whom, and leads back (D12, D15, D16, D34)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from corpid.rules.limits import INTERACTION_SECONDS
from corpid.web.pages.components import TimeLimit
from corpid.web.pages.translations import LANGUAGES, lookup, translator
from tests.browser.stage import CHROMIUM, FLAGS, MESSAGE, Stage, Visitor, shows

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.full

NO_COOKIES = {"profile": {"default_content_setting_values": {"cookies": 2}}}
COUNTED = """region => {
  window.changes = 0;
  new MutationObserver(found => { window.changes += found.length; })
    .observe(region, { childList: true, characterData: true, subtree: true });
}"""
ELSEWHERE = "This sign-in belongs to another browser"


def finished(visitor: Visitor, stage: Stage) -> tuple[Page, Page, str]:
    """A sign-in that is complete in one tab and open at its last page in another; its address."""
    url, _ = stage.begin()
    first, second = visitor.tab(), visitor.tab()
    first.goto(url)
    for step in (visitor.password, visitor.code, visitor.entity):
        step(first)
    first.get_by_role("heading", level=1, name="Do you agree to share this?").wait_for()
    second.goto(first.url)
    visitor.agree(first)
    visitor.back(first)
    return first, second, url


def leads_back(page: Page, *, said: bool = True) -> None:
    """Who asked and their message stand in the box; the one button goes to the relying party."""
    relying_party = page.locator(".relying-party")
    assert "Harbour Board" in relying_party.inner_text()
    assert (MESSAGE in relying_party.inner_text()) is said
    assert page.get_by_role("link", name="Harbour Board").get_attribute("href")
    assert page.locator("main .button").count() == 1


def test_a_tab_that_comes_too_late_says_so(visitor: Visitor, stage: Stage) -> None:
    """D15: nothing is asked any more, and the way back is the answer that was given."""
    first, second, _ = finished(visitor, stage)
    second.reload()
    second.get_by_role("heading", level=1, name="This sign-in is finished").wait_for()
    leads_back(second)
    second.get_by_role("link", name="Return to Harbour Board").click()
    visitor.back(second)
    assert second.url == first.url


def test_a_link_that_was_used_already_leads_back_at_once(visitor: Visitor, stage: Stage) -> None:
    """D15: there is nothing to do here for the person who opens the address that began it once more."""
    _, second, url = finished(visitor, stage)
    second.goto(url)
    assert visitor.back(second)["error"] == "invalid_request_uri"


def test_an_expired_sign_in_says_for_whom_it_was(visitor: Visitor, stage: Stage) -> None:
    """D12, D15."""
    page = visitor.tab()
    page.goto(stage.begin()[0])
    stage.world.clock.pass_(INTERACTION_SECONDS)
    page.reload()
    shows(page, "This sign-in has expired")
    leads_back(page)


def test_another_browser_is_told_whose_sign_in_it_is_and_not_what_for(
    chromium: Browser, visitor: Visitor, stage: Stage
) -> None:
    """D34: the message is for the person who began it."""
    page = visitor.tab()
    page.goto(stage.begin()[0])
    with chromium.new_context() as other:
        stranger = other.new_page()
        stranger.goto(page.url)
        shows(stranger, ELSEWHERE)
        leads_back(stranger, said=False)


def test_a_browser_that_keeps_no_cookies_is_told_to_allow_them(chromium: Browser, stage: Stage, tmp_path: Path) -> None:
    """D34: with Chromium's own setting against cookies."""
    (tmp_path / "Default").mkdir()
    (tmp_path / "Default" / "Preferences").write_text(json.dumps(NO_COOKIES), encoding="utf-8")
    with chromium.browser_type.launch_persistent_context(tmp_path, executable_path=CHROMIUM, args=FLAGS) as context:
        page = context.new_page()
        page.goto(stage.begin()[0])
        assert context.cookies() == []
        shows(page, ELSEWHERE)
        assert page.get_by_text("Allow cookies for this site").is_visible()
        leads_back(page, said=False)


@pytest.mark.parametrize("dismissed", [False, True])
def test_three_minutes_before_the_end_the_page_says_so(visitor: Visitor, stage: Stage, *, dismissed: bool) -> None:
    """WCAG 2.2.1: announced without taking the focus; a note that was closed stays closed until time is over."""
    page = visitor.tab()
    page.clock.install()
    page.goto(stage.begin()[0])
    page.get_by_label("User name").focus()
    page.clock.fast_forward((INTERACTION_SECONDS - TimeLimit.warn_seconds + 2) * 1000)
    warning = page.locator("#time-warning")
    warning.get_by_text("About 3 minutes left on this page.").wait_for()
    assert warning.get_attribute("aria-live") == "polite"
    expect(page.locator("#user_name")).to_be_focused()
    if dismissed:
        warning.get_by_role("button", name="Close this message").click()
        page.clock.fast_forward(2000)
        expect(warning).to_be_empty()
    page.clock.fast_forward(TimeLimit.warn_seconds * 1000)
    warning.get_by_text("This page has timed out").wait_for()


@pytest.mark.parametrize("tag", [language.tag for language in LANGUAGES])
def test_the_time_left_is_said_once_a_minute(visitor: Visitor, stage: Stage, tag: str) -> None:
    """WCAG 4.1.3: a polite region, of which only the sentence changes; then the page says that it is over."""
    page = visitor.tab()
    page.clock.install()
    page.goto(stage.begin()[0])
    page.goto(f"{stage.world.base}/language/{tag}?page={urlsplit(page.url).path}")
    said = [translator(lookup((tag,), LANGUAGES) or LANGUAGES[0]).say(each) for each in TimeLimit.left]
    warning = page.locator("#time-warning")
    page.clock.fast_forward((INTERACTION_SECONDS - TimeLimit.warn_seconds + 2) * 1000)
    expect(warning.get_by_text(said[2], exact=True)).to_be_visible()
    assert (warning.get_attribute("aria-live"), warning.get_attribute("aria-atomic")) == ("polite", "false")
    warning.evaluate(COUNTED)
    for number, text in enumerate((said[1], said[0]), 1):
        page.clock.run_for(60_000)
        expect(warning.get_by_text(text, exact=True)).to_be_visible()
        assert page.evaluate("window.changes") == number
    page.clock.run_for(60_000)
    assert warning.locator("[data-left]").count() == 0


def test_who_guesses_too_often_is_told_how_long_to_wait(visitor: Visitor, stage: Stage) -> None:
    """D47: who asked and the way out stay on the page; then the person gets in."""
    user_name = stage.somebody()
    page = visitor.tab()
    page.goto(stage.begin()[0])
    summary = page.locator(".error-summary")
    for number in range(6):
        visitor.password(page, f"wrong horse battery {number}", user_name=user_name)
        expect(page.get_by_label("Password")).to_have_value("")
        expect(summary).to_be_visible()
    visitor.password(page, user_name=user_name)
    expect(summary).to_contain_text("Too many attempts. Wait ")
    assert "Harbour Board" in page.locator(".relying-party").inner_text()
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    stage.world.clock.pass_(60)
    visitor.password(page, user_name=user_name)
    page.get_by_role("heading", level=1, name="Enter your 6-digit code").wait_for()
