"""The field of the console that searches everything, from the keyboard (D82)."""

from __future__ import annotations

import pytest

from tests.browser.gallery import Appearance, Beholder

pytestmark = pytest.mark.full

FOCUSED = "document.activeElement.id"


def test_a_slash_leads_to_the_field_and_is_a_slash_while_something_is_typed(beholder: Beholder) -> None:
    """D82."""
    page = beholder.look("console-people", Appearance())
    page.keyboard.press("/")
    assert page.evaluate(FOCUSED) == "site-search"
    assert page.locator("#site-search").input_value() == ""
    page.locator("#search").focus()
    page.keyboard.press("/")
    assert page.evaluate(FOCUSED) == "search"
    assert page.locator("#search").input_value() == "/A"


def test_the_key_can_be_turned_off_in_this_browser(beholder: Beholder) -> None:
    """WCAG 2.1.4: by keyboard and by mouse; it stays off on the next page, and can be turned on again."""
    page = beholder.look("console-people", Appearance(width=1280, height=800))
    choice = page.get_by_label("Press / to search")
    assert not choice.is_visible()
    page.keyboard.press("/")
    assert page.locator("#site-search").get_attribute("aria-keyshortcuts") == "/"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.reload()
    page.keyboard.press("/")
    assert page.evaluate(FOCUSED) == ""
    assert page.locator("#site-search").get_attribute("aria-keyshortcuts") is None
    page.locator("#site-search").focus()
    page.get_by_text("Press / to search").click()
    assert choice.is_checked()
    page.locator("main").click(position={"x": 1, "y": 1})
    page.keyboard.press("/")
    assert page.evaluate(FOCUSED) == "site-search"


@pytest.mark.parametrize("key", ["Control+/", "Alt+/", "Meta+/"])
def test_a_key_of_the_browser_stays_one(beholder: Beholder, key: str) -> None:
    """D82."""
    page = beholder.look("console-people", Appearance())
    page.keyboard.press(key)
    assert page.evaluate(FOCUSED) != "site-search"
