"""The languages in Chromium: picked without a script, narrow enough, and mirrored where a language is (WCAG 1.4.10, 3.1.1)."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from corpid.web.pages.translations import LANGUAGES, PSEUDO
from tests.browser.stage import Stage, Visitor, with_and_without_script

pytestmark = pytest.mark.full

SMALL = {"viewport": {"width": 320, "height": 640}}
LEFT_OF = "([one, other]) => document.querySelector(one).getBoundingClientRect().x < document.querySelector(other).getBoundingClientRect().x"
OUTSIDE = "() => [...document.querySelectorAll('main *, footer *')].filter((each) => { const box = each.getBoundingClientRect(); return box.width > 1 && (box.left < -1 || box.right > innerWidth + 1); }).map((each) => each.outerHTML.slice(0, 80))"
TAGS = [language.tag for language in (*LANGUAGES, PSEUDO)]


@with_and_without_script
def test_a_person_picks_a_language_at_the_foot_of_the_page_and_goes_on_in_it(visitor: Visitor, stage: Stage) -> None:
    page = visitor.tab()
    page.goto(stage.begin()[0])
    where = page.url
    for language in LANGUAGES:
        page.get_by_role("link", name=language.name).click()
        page.locator(f"html[lang={language.tag}]").wait_for()
        assert page.url == where
        expect(page.locator(".languages [aria-current]")).to_have_text(language.name)
    page.get_by_role("link", name="Bahasa Melayu").click()
    page.get_by_label("Nama pengguna").fill("alice")
    page.get_by_label("Kata laluan").fill("correct horse battery")
    page.get_by_role("button", name="Teruskan").click()
    page.get_by_role("heading", name="Masukkan kod 6 digit anda").wait_for()


def test_the_user_name_that_was_typed_stays_when_a_language_is_picked(visitor: Visitor, stage: Stage) -> None:
    """And not beyond: the next sign-in in this tab begins with an empty field."""
    page = visitor.tab()
    page.goto(stage.begin()[0])
    page.get_by_label("User name").fill("alice")
    page.get_by_role("link", name="Bahasa Melayu").click()
    page.locator("html[lang=ms]").wait_for()
    expect(page.locator("#user_name")).to_have_value("alice")
    page.goto(stage.begin()[0])
    expect(page.locator("#user_name")).to_have_value("")


@pytest.mark.parametrize("visitor", [{"locale": "ta-IN"}], indirect=True, ids=["ta-IN"])
def test_a_browser_in_tamil_gets_tamil_pages(visitor: Visitor, stage: Stage) -> None:
    page = visitor.tab()
    page.goto(stage.world.base)
    page.locator("html[lang=ta]").wait_for()


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("visitor", [SMALL], indirect=True, ids=["320 px"])
def test_no_page_scrolls_sideways_in_any_language(visitor: Visitor, stage: Stage, tag: str) -> None:
    """WCAG 1.4.10: also from right to left, where what is too wide hangs out on the other side."""
    page = visitor.tab()
    page.goto(stage.begin(ui_locales=tag)[0])
    continued = page.locator("main form[action^='/sign-in/'] button:not([name], [form], .button-quiet)").first
    for field, value in (("#user_name", "alice"), ("#password", "wrong horse battery")):
        page.locator(field).fill(value)
    continued.click()
    page.locator(".error-summary").wait_for()
    assert page.evaluate(OUTSIDE) == []
    page.locator("#password").fill("correct horse battery")
    continued.click()
    page.locator("#code").fill(stage.code())
    assert page.evaluate(OUTSIDE) == []
    continued.click()
    page.locator("input[name=entity]").first.wait_for()
    assert page.evaluate(OUTSIDE) == []


@pytest.mark.parametrize(("tag", "mirrored"), [("en", False), (PSEUDO.tag, True)])
def test_a_language_from_right_to_left_mirrors_the_page(
    visitor: Visitor, stage: Stage, tag: str, *, mirrored: bool
) -> None:
    page = visitor.tab()
    page.goto(stage.begin(ui_locales=tag)[0])
    buttons = [".actions .button:not(.button-quiet)", ".actions .button-quiet"]
    assert page.evaluate(LEFT_OF, buttons) is not mirrored
    assert page.evaluate(LEFT_OF, [".brand img", ".brand span"]) is not mirrored
    assert page.locator("#user_name").evaluate("e => getComputedStyle(e).direction") == "ltr"
