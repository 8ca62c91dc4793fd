"""What pages announce while they stay: once each, politely, and without taking the focus (WCAG 4.1.3).

A region is there and empty before it says something: screen readers announce changes, not regions that appear. Regions are
`aria-live` rather than `role=status`, which Orca reads as an empty status bar, and whose words it then leaves out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import Page, Route, expect

from corpid.rules.limits import INTERACTION_SECONDS
from corpid.web.pages.components import TimeLimit
from tests.browser.test_kept_and_shown import at

if TYPE_CHECKING:
    from tests.browser.stage import Stage, Visitor

pytestmark = pytest.mark.full

LISTEN: Final = """() => {
    window.announced = [];
    for (const region of document.querySelectorAll("[aria-live=polite]")) new MutationObserver(() => {
        const words = region.textContent.trim().replace(/\\s+/g, " ");
        if (words) announced.push(words);
    }).observe(region, { childList: true, characterData: true, subtree: true });
}"""


def announced(page: Page) -> list[str]:
    return list(page.evaluate("announced"))


def test_the_number_of_results_is_announced(visitor: Visitor, stage: Stage) -> None:
    page = visitor.tab()
    page.goto(stage.begin()[0])
    visitor.password(page)
    visitor.code(page)
    field = page.get_by_label("Search by name or number")
    field.wait_for()
    page.evaluate(LISTEN)
    field.fill("Works 17")
    page.wait_for_function("() => announced.length")
    assert announced(page) == ["1 found"]
    field.fill("nobody")
    page.wait_for_function("() => announced.length > 1")
    assert announced(page)[1].startswith("No results for nobody.")
    expect(field).to_be_focused()


def test_what_was_typed_before_the_script_came_is_searched_for(visitor: Visitor, stage: Stage) -> None:
    """A slow connection loses no key: the script looks at the field when it starts."""
    page = visitor.tab()
    held: list[Route] = []
    page.route("**/search*.js*", lambda route: held.append(route))  # noqa: PLW0108 - a method of a list takes no marks
    page.goto(stage.begin()[0])
    visitor.password(page)
    with page.expect_request("**/search*.js*"):
        visitor.code(page)
    field = page.get_by_label("Search by name or number")
    field.fill("Works 17")
    held.pop().continue_()
    expect(page.locator("#results")).to_contain_text("1 found")
    expect(field).to_have_value("Works 17")


def test_that_time_is_short_is_announced_once(visitor: Visitor, stage: Stage) -> None:
    """WCAG 2.2.1: not again with each second that the page looks at its clock."""
    page = visitor.tab()
    page.clock.install()
    page.goto(stage.begin()[0])
    page.get_by_label("User name").focus()
    page.evaluate(LISTEN)
    page.clock.fast_forward((INTERACTION_SECONDS - TimeLimit.warn_seconds + 2) * 1000)
    page.wait_for_function("() => announced.length")
    page.clock.run_for(5000)
    assert len(announced(page)) == 1
    expect(page.get_by_label("User name")).to_be_focused()


def test_codes_that_are_copied_are_announced_each_time(visitor: Visitor, stage: Stage) -> None:
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = at(visitor, stage, "codes")
    page.evaluate(LISTEN)
    button = page.get_by_role("button", name="Copy")
    for times in (1, 2):
        button.click()
        page.wait_for_function("times => announced.length === times", arg=times)
    assert set(announced(page)) == {"The codes are copied."}
    expect(button).to_be_focused()


def test_a_password_that_is_shown_or_hidden_is_announced(visitor: Visitor, stage: Stage) -> None:
    page = visitor.tab()
    page.goto(stage.begin()[0])
    page.evaluate(LISTEN)
    for name in ("Show password", "Hide password"):
        page.get_by_role("button", name=name).click()
    assert announced(page) == ["Your password is visible.", "Your password is hidden."]


def test_an_error_is_not_announced_beside_taking_the_focus(visitor: Visitor, stage: Stage) -> None:
    """WCAG 3.3.1: as an alert that has the focus, it would be read twice."""
    page = visitor.tab()
    page.goto(stage.begin()[0])
    visitor.password(page, "wrong horse battery")
    expect(page.locator(".error-summary")).to_be_focused()
    assert page.title().startswith("Error: ")
    assert page.locator("[role=alert], [aria-live=assertive]").count() == 0
    assert [each.strip() for each in page.locator("[aria-live]").all_inner_texts() if each.strip()] == []


def test_what_was_saved_is_in_the_title_that_is_read_first(visitor: Visitor, stage: Stage) -> None:
    """What stands on a page from the beginning is announced by no live region."""
    page = at(visitor, stage, "language")
    page.get_by_role("button", name="Save").click()
    saved = page.locator(".saved")
    saved.wait_for()
    assert page.title().startswith(f"{saved.inner_text()} ")
