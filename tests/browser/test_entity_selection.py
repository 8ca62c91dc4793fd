"""The list of entities on small and large screens: nobody acts for an organisation that they have not seen (D17).

The pages are those that people meet: without the banner of developer mode.
"""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import expect

from corpid.web.pages.translations import LANGUAGES
from tests.browser.gallery import Appearance, Beholder

pytestmark = pytest.mark.full

COMMON: Final = ((1366, 625), (390, 664), (360, 640))
"""what laptops and phones show of a page, in CSS pixels"""
SMALL: Final = ((640, 512), (320, 256))
"""what is left of 1280 by 1024 pixels at 200 % and 400 %"""
ABOVE: Final = """last => {
    const found = [], box = of => document.querySelector(of).getBoundingClientRect();
    for (let at = 0; at <= last; at += 25) {
        scrollTo(0, at);
        if (box(".kept").top < box(".choice:has(:checked)").bottom) found.push(at);
    }
    return found;
}"""
"""scrolled so far, in pixels, the button stands above the end of the choice"""


@pytest.mark.parametrize(("width", "height"), COMMON)
@pytest.mark.parametrize("state", ["choose", "choose-many"])
def test_the_choice_that_is_made_already_is_seen_at_once(
    beholder: Beholder, state: str, width: int, height: int
) -> None:
    page = beholder.look(state, Appearance(width=width, height=height))
    chosen = page.locator(".choice:has(:checked)").bounding_box()
    assert chosen is not None
    assert chosen["y"] + chosen["height"] <= height
    assert page.evaluate(ABOVE, 0) == []


@pytest.mark.parametrize(("width", "height"), [*COMMON, *SMALL])
@pytest.mark.parametrize("state", ["choose-crowded", "choose-many", "choose-warned"])
def test_nobody_meets_the_button_before_the_choice_that_it_takes(
    beholder: Beholder, state: str, width: int, height: int
) -> None:
    """However much stands above the list: where the choice is further down, so is the button."""
    page = beholder.look(state, Appearance(language=LANGUAGES[-1], width=width, height=height))
    assert page.evaluate(ABOVE, 1500) == []


@pytest.mark.parametrize(("width", "height"), COMMON)
def test_the_button_stays_in_sight_beside_a_long_list(beholder: Beholder, width: int, height: int) -> None:
    page = beholder.look("choose-many", Appearance(width=width, height=height))
    page.locator(".choice").nth(30).scroll_into_view_if_needed()
    expect(page.get_by_role("button", name="Continue")).to_be_in_viewport(ratio=1)
