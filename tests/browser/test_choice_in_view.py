"""Choosing an entity on small screens: the buttons are whole, and hits of a search stay above a phone's keyboard.

With the banner of developer mode and the footer, as in the demo.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from corpid.web.pages.translations import LANGUAGES
from tests.browser.stage import Stage, Visitor, shows
from tests.sign_in.world import PASSWORD, entity
from tests.tiers import first_or_full

pytestmark = pytest.mark.full

LAPTOP: Final = {"viewport": {"width": 1280, "height": 800}}
PHONE: Final = {"viewport": {"width": 375, "height": 667}}
KEYBOARD_OPEN: Final = {"width": 375, "height": 340}
"""what a phone of that size shows above its keyboard, in CSS pixels"""
CHOICE: Final = "Choose who you act for"


def at_the_choice(visitor: Visitor, stage: Stage, count: int) -> Page:
    """The list of a person who may act for so many entities."""
    user_name = f"many{count}"
    if user_name not in stage.world.people:
        entities = (entity(f"3{count:03}{n:04}A", f"Harbour Works {n} Pte. Ltd.") for n in range(count))
        stage.wait_for(stage.world.person(user_name, *entities, name="Mei Many"))
    page = visitor.tab()
    page.goto(stage.begin()[0])
    visitor.password(page, PASSWORD, user_name=user_name)
    visitor.code(page)
    shows(page, CHOICE)
    return page


def box(found: Locator) -> FloatRect:
    shown = found.bounding_box()
    assert shown is not None
    return shown


def is_whole(page: Page, found: Locator) -> bool:
    """Whether the window shows all of it, below what sticks to its top."""
    shown, size = box(found), page.viewport_size
    assert size is not None
    return (
        shown["y"] >= 0
        and shown["y"] + shown["height"] <= size["height"]
        and shown["x"] + shown["width"] <= size["width"]
    )


def whole_everywhere(page: Page, stage: Stage) -> None:
    """In each language, at once and wherever the list is scrolled to."""
    for language in LANGUAGES:
        page.goto(f"{stage.world.base}/language/{language.tag}?page={urlsplit(page.url).path}")
        last = int(page.evaluate("document.querySelector('.choice:last-child').getBoundingClientRect().bottom"))
        for place in (None, last // 2, max(0, last - 400)):
            if place is not None:
                page.evaluate(f"scrollTo(0, {place})")
            for button in ("button:not(.button-quiet)", "button[form=cancel]"):
                assert is_whole(page, page.locator(f".kept {button}")), (language.tag, place, button)


@pytest.mark.parametrize(
    "visitor", [pytest.param(LAPTOP, marks=pytest.mark.full), PHONE], indirect=True, ids=["laptop", "phone"]
)
@pytest.mark.parametrize("count", first_or_full([200, 3, 9]))
def test_the_buttons_are_whole_beside_any_number_of_entities(visitor: Visitor, stage: Stage, count: int) -> None:
    page = at_the_choice(visitor, stage, count)
    expect(page.locator(".developer")).to_be_visible()
    assert is_whole(page, page.locator(".choice").first)
    whole_everywhere(page, stage)


@pytest.mark.parametrize(
    "visitor", [pytest.param(LAPTOP, marks=pytest.mark.full), PHONE], indirect=True, ids=["laptop", "phone"]
)
@pytest.mark.parametrize("count", first_or_full([200, 3]))
def test_the_buttons_are_whole_below_a_choice_that_is_made_already(visitor: Visitor, stage: Stage, count: int) -> None:
    """At once, and never above that choice, which is the one that they would take."""
    page = at_the_choice(visitor, stage, count)
    page.locator(".choice").nth(1).click()
    page.get_by_role("button", name="Continue").click()
    visitor.agree(page)
    visitor.back(page)
    page = at_the_choice(visitor, stage, count)
    chosen = page.locator(".choice:has(:checked)")
    whole_everywhere(page, stage)
    for language in LANGUAGES:
        page.goto(f"{stage.world.base}/language/{language.tag}?page={urlsplit(page.url).path}")
        assert is_whole(page, chosen), language.tag
        assert box(chosen)["y"] + box(chosen)["height"] <= box(page.locator(".kept"))["y"], language.tag


@pytest.mark.parametrize("visitor", [PHONE], indirect=True, ids=["phone"])
def test_hits_stand_between_the_search_and_the_keyboard(visitor: Visitor, stage: Stage) -> None:
    """The field goes to the top when it is used; nothing that sticks covers what was found."""
    page = at_the_choice(visitor, stage, 200)
    field = page.get_by_role("searchbox")
    field.focus()
    page.set_viewport_size(KEYBOARD_OPEN)  # type: ignore[arg-type]
    expect(page.locator(".choice").first).to_be_in_viewport(ratio=1)
    for typed in ("Works 17", "Works 199", "nothing"):
        field.fill(typed)
        found = page.locator("#results", has_text=typed.rpartition(" ")[2]).locator(".choice, p.found").first
        expect(found).to_be_in_viewport(ratio=1)
        expect(field).to_be_in_viewport(ratio=1)
        assert page.evaluate(
            "found => { const box = found.getBoundingClientRect();"
            "return found.contains(document.elementFromPoint(box.left + box.width / 2, box.bottom - 4)); }",
            found.element_handle(),
        ), typed
