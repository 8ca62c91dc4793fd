"""The field of the console that searches everything, from the keyboard (D82)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.gallery import Appearance

if TYPE_CHECKING:
    from tests.browser.gallery import Beholder

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


@pytest.mark.parametrize("key", ["Control+/", "Alt+/", "Meta+/"])
def test_a_key_of_the_browser_stays_one(beholder: Beholder, key: str) -> None:
    """D82."""
    page = beholder.look("console-people", Appearance())
    page.keyboard.press(key)
    assert page.evaluate(FOCUSED) != "site-search"
