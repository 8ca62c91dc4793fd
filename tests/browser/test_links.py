"""Links whose code is in the fragment, in Chromium: followed with script, typed without (D34, D48)."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from corpid.rules.authentication import records
from tests.browser.stage import Stage, Visitor, shows
from tests.browser.test_enrolment import invited
from tests.enrolment import newcomer

pytestmark = pytest.mark.full

SET_UP: Final = "Set up your sign-in"
ASKS: Final = "Enter your code"
CODE: Final = "Code from your e-mail"
ENTRIES: Final = "navigation.entries().map(each => each.url).join(' ')"
"""the addresses that Back and Forward lead to"""


def _sent(page: Page) -> list[str]:
    """Address and headers of every request, as Chromium sends them, from now on."""
    sent: list[str] = []

    def hear(event: dict[str, Any]) -> None:
        sent.append(f"{event['request']['url']} {event['request']['headers']}")

    cdp = page.context.new_cdp_session(page)
    cdp.send("Network.enable")
    cdp.on("Network.requestWillBeSent", hear)
    return sent


def _holds(text: str, url: str) -> bool:
    return records.canonical(url) in text.upper().replace("-", "")


def test_a_link_that_is_followed_leaves_its_code_in_no_address_and_no_request(visitor: Visitor, stage: Stage) -> None:
    """D48: not in the address bar, the history or a Referer; only the body of a POST holds it."""
    page, url = visitor.tab(), invited(stage, "lena1")
    sent = _sent(page)
    page.goto(url)
    shows(page, SET_UP)
    assert not _holds(page.url, url)
    assert not _holds(page.evaluate(ENTRIES), url)
    page.get_by_role("button", name="Continue").click()
    shows(page, "Choose how you sign in")
    assert not _holds(page.evaluate(ENTRIES), url)
    assert len(sent) > 4
    assert not [each for each in sent if _holds(each, url)]


def test_going_back_from_an_opened_link_asks_for_a_code_and_shows_none(visitor: Visitor, stage: Stage) -> None:
    page, url = visitor.tab(), invited(stage, "lena2")
    page.goto(f"{stage.world.base}/")
    page.goto(url)
    shows(page, SET_UP)
    page.go_back()
    if page.url.endswith("/enrol"):
        expect(page.get_by_label(CODE)).to_have_value("")
        expect(page.get_by_label(CODE)).to_be_visible()
    assert not _holds(page.content(), url)


def test_another_link_in_the_same_tab_is_followed_too(visitor: Visitor, stage: Stage) -> None:
    """Only the fragment changes then, so that the page is not loaded again."""
    page, url = visitor.tab(), invited(stage, "lena3")
    page.goto(f"{stage.world.base}/enrol")
    shows(page, ASKS)
    page.evaluate("url => { location.href = url }", url)
    shows(page, SET_UP)
    assert not _holds(page.evaluate(ENTRIES), url)


def test_a_link_that_was_cut_short_asks_for_its_code(visitor: Visitor, stage: Stage) -> None:
    """As does one whose fragment a mail program dropped; the way from an error to its field is no link."""
    page, url = visitor.tab(), invited(stage, "lena4")
    for shortened in (url[:-3], urlsplit(url)._replace(fragment="").geturl()):
        page.goto("about:blank")
        page.goto(shortened)
        shows(page, ASKS)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("link", name="Enter all 20 letters and digits").click()
    expect(page.get_by_label(CODE)).to_be_focused()
    page.get_by_label(CODE).fill(records.canonical(url).lower())
    page.get_by_role("button", name="Continue").click()
    shows(page, SET_UP)


def test_a_link_that_opens_nothing_any_more_says_so_at_once(visitor: Visitor, stage: Stage) -> None:
    page, url = visitor.tab(), invited(stage, "lena5")
    stage.wait_for(newcomer.link(stage.world, user_id="id-lena5"))
    page.goto(url)
    shows(page, newcomer.GONE)
    assert not _holds(page.url, url)
