"""The sign-in in Chromium: with and without JavaScript, by keyboard, on a small screen (D36, D37, WCAG 2.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

from tests.browser.stage import MESSAGE, WITHOUT_SCRIPT, Stage, Visitor, heading

if TYPE_CHECKING:
    from collections.abc import Callable


OUTLINE = """() => {
    const element = document.activeElement;
    return getComputedStyle(element.closest(".choice") ?? element).outlineStyle;
}"""
UNCOVERED = """() => {
    const { x, y, width, height } = document.activeElement.getBoundingClientRect();
    const top = document.elementFromPoint(x + width / 2, y + height / 2);
    return document.activeElement.closest(".choice").contains(top);
}"""
SMALL = {"viewport": {"width": 320, "height": 640}}
PAGES = ("Sign in", "Enter your 6-digit code", "Choose who you act for", "Do you agree to share this?")


def walk(visitor: Visitor, page: Page, *, upto: int = 4) -> list[str]:
    """Answer so many pages; their headings."""
    steps, seen = (visitor.password, visitor.code, visitor.entity, visitor.agree), []
    for step, expected in zip(steps[:upto], PAGES, strict=False):
        page.get_by_role("heading", level=1, name=expected).wait_for()
        seen.append(heading(page))
        step(page)
    return seen


@pytest.mark.parametrize("visitor", [{}, WITHOUT_SCRIPT], indirect=True, ids=["script", "no script"])
def test_a_person_signs_in_and_comes_back_to_the_relying_party(visitor: Visitor, stage: Stage) -> None:
    """D37: in spite of form-action 'self', and without JavaScript."""
    url, rp = stage.begin()
    page = visitor.tab()
    page.goto(url)
    assert walk(visitor, page) == list(PAGES)
    assert visitor.back(page)["state"] == rp.sign_in.state
    assert stage.redeem(rp, page.url) == "200000001A"


@pytest.mark.parametrize("answered", [0, *(pytest.param(number, marks=pytest.mark.full) for number in (1, 2)), 3])
def test_cancel_leads_back_from_every_page(visitor: Visitor, stage: Stage, answered: int) -> None:
    """D17, D37."""
    url, rp = stage.begin()
    page = visitor.tab()
    page.goto(url)
    walk(visitor, page, upto=answered)
    page.get_by_role("heading", level=1, name=PAGES[answered]).wait_for()
    page.get_by_role("button", name="Cancel").click()
    answer = visitor.back(page)
    assert (answer["error"], answer["state"]) == ("access_denied", rp.sign_in.state)


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until this element has the focus, which must be seen there (WCAG 2.4.7)."""
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            assert page.evaluate(OUTLINE) != "none", f"{selector}: the focus cannot be seen"
            return
    pytest.fail(f"Tab does not reach {selector}")


def test_the_whole_way_by_keyboard_alone(visitor: Visitor, stage: Stage) -> None:
    """WCAG 2.1.1: fields, search, choice and buttons in the order in which they are read."""
    url, rp = stage.begin()
    page = visitor.tab()
    page.goto(url)
    tab_to(page, "#user_name")
    page.keyboard.type("alice")
    page.keyboard.press("Tab")
    page.keyboard.type("correct horse battery")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=PAGES[1]).wait_for()
    tab_to(page, "#code")
    page.keyboard.type(stage.code())
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=PAGES[2]).wait_for()
    tab_to(page, "#query")
    page.keyboard.type("works 1")
    page.keyboard.press("Enter")
    page.get_by_text("10 found").wait_for()
    tab_to(page, "input[name=entity]")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=PAGES[3]).wait_for()
    tab_to(page, "button[value=agree]")
    page.keyboard.press("Enter")
    visitor.back(page)
    assert stage.redeem(rp, page.url) == "200000011A"


@pytest.mark.full
@pytest.mark.parametrize("visitor", [SMALL], indirect=True, ids=["320 px"])
def test_no_page_scrolls_sideways_at_320_pixels(visitor: Visitor, stage: Stage) -> None:
    """WCAG 1.4.10: with errors, and with a name of seventy letters without a gap."""
    page = visitor.tab()
    page.goto(stage.begin()[0])

    def fits() -> None:
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 320, f"{heading(page)}: {width} px"

    fits()
    visitor.password(page, "wrong horse battery")
    page.locator(".error-summary").wait_for()
    fits()
    steps: list[Callable[[Page], None]] = [visitor.password, visitor.code, visitor.entity, visitor.agree]
    for answered, step in enumerate(steps):
        page.get_by_role("heading", level=1, name=PAGES[answered]).wait_for()
        fits()
        step(page)
    visitor.back(page)
    page.goto(f"{stage.world.base}/sign-in/unknown")
    fits()


@pytest.mark.full
@pytest.mark.parametrize("visitor", [SMALL], indirect=True, ids=["320 px"])
def test_the_choice_that_has_the_focus_is_never_covered(visitor: Visitor, stage: Stage) -> None:
    """WCAG 2.4.11: the buttons stay at the lower edge of a long list, and nothing hides behind them."""
    page = visitor.tab()
    page.goto(stage.begin()[0])
    walk(visitor, page, upto=2)
    page.get_by_role("heading", name=PAGES[2]).wait_for()
    tab_to(page, "input[name=entity]")
    for _ in range(13):
        assert page.evaluate(UNCOVERED), page.evaluate("document.activeElement.value")
        page.keyboard.press("ArrowDown")


def test_fields_tell_browsers_and_phones_what_to_fill_in(visitor: Visitor, stage: Stage) -> None:
    """WCAG 1.3.5, 3.3.8: and nothing stands in the way of a password manager or a paste."""
    page = visitor.tab()
    page.goto(stage.begin()[0])
    for field, expected in (("#user_name", "username webauthn"), ("#password", "current-password")):
        assert page.locator(field).get_attribute("autocomplete") == expected
    assert page.locator("#password").get_attribute("type") == "password"
    visitor.password(page)
    code = page.locator("#code")
    code.wait_for()
    assert code.get_attribute("autocomplete") == "one-time-code"
    assert code.get_attribute("inputmode") == "numeric"
    assert code.get_attribute("maxlength") is None


def test_a_code_with_a_space_can_be_pasted(visitor: Visitor, stage: Stage) -> None:
    """D45: as authenticator apps copy it."""
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visitor.tab()
    page.goto(stage.begin()[0])
    visitor.password(page)
    page.locator("#code").wait_for()
    code = stage.code()
    page.evaluate("text => navigator.clipboard.writeText(text)", f"{code[:3]} {code[3:]}")
    page.locator("#code").focus()
    page.keyboard.press("Control+V")
    expect(page.locator("#code")).to_have_value(f"{code[:3]} {code[3:]}")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=PAGES[2]).wait_for()


def test_an_error_is_announced_and_its_link_leads_to_the_field(visitor: Visitor, stage: Stage) -> None:
    """WCAG 3.3.1: the summary has the focus; the title says Error; the message of D12 is still there."""
    page = visitor.tab()
    page.goto(stage.begin()[0])
    visitor.password(page, "wrong horse battery")
    summary = page.locator(".error-summary")
    summary.wait_for()
    expect(page.locator(".error-summary")).to_be_focused()
    assert page.title().startswith("Error: ")
    summary.get_by_role("link").click()
    expect(page.locator("#password")).to_be_focused()
    assert page.get_by_text(MESSAGE).is_visible()
