"""Every state of every page: axe-core finds nothing, and what no such tool can see holds, too (WCAG 2.2 AA).

The pages are those of developer mode, which have everything that the others have.

In `make test` the components that pages are made of are looked at in their gallery, with a page and a form of each part of
the provider; in `make test-full` every state, and every language and scheme of colours (`test_appearances`).
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from playwright.sync_api import Page, expect

from corpid.web.pages.components import TimeLimit
from corpid.web.pages.translations import LANGUAGES
from tests.browser.gallery import CUT, OUTSIDE, Appearance, Beholder, complaints, shown_as
from tests.browser.states import STATES, WALKS_OR_FULL
from tests.house.source import listed

if TYPE_CHECKING:
    from collections.abc import Iterator


PLAIN: Final = Appearance()
ZOOMED: Final = Appearance(width=320, height=256)
"""what is left of 1280 by 1024 pixels at 400 %"""
WORDY: Final = Appearance(language=LANGUAGES[-1], width=320, height=640)
"""the language with the longest words on a small screen"""
FORCED: Final = Appearance(forced_colors="active")
LARGE: Final = (Appearance(width=1280), Appearance(width=375, height=667))
"""the windows in which text is set to 200 %"""
ROTATED: Final = Appearance(width=640, height=512)
"""what is left of 1280 by 1024 pixels at 200 %"""
TEXT_SIZE: Final = 16
"""what browsers are set to, in CSS pixels"""

SPACED: Final = """() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`* { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important; }
        p { margin-block-end: 2em !important; }`);
    document.adoptedStyleSheets = [sheet];
}"""
UNSPACED: Final = "() => { document.adoptedStyleSheets = []; }"
SMALL: Final = """() => [...document.querySelectorAll("button, .button, summary, input, .languages a, .links a, .error-summary a")].map(
    each => [each, (each.closest(".choice, .select label") ?? each).getBoundingClientRect()]
).filter(([each, box]) => each.type !== "hidden" && each.checkVisibility() && !each.matches(".visually-hidden") && box.width && (box.width < 43.9 || box.height < 43.9)
).map(([each, box]) => `${Math.round(box.width)}x${Math.round(box.height)} ${each.outerHTML.slice(0, 120)}`)"""
OVERLAPPING: Final = """() => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), lines = [];
    while (texts.nextNode()) {
        const each = texts.currentNode, parent = each.parentElement, range = document.createRange();
        if (!each.data.trim() || !parent.checkVisibility({ visibilityProperty: true }) || parent.closest(".visually-hidden, template, noscript, script, style")) continue;
        range.selectNodeContents(each);
        for (const box of range.getClientRects()) lines.push([each.data.trim(), box]);
    }
    // letters reach a little beyond their line
    const over = (one, other) => Math.min(one.right, other.right) - Math.max(one.left, other.left) > 2
        && Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 0.4 * Math.min(one.height, other.height);
    return lines.flatMap(([text, box], at) => lines.slice(at + 1).filter(([, other]) => over(box, other)).map(
        ([other]) => `${text.slice(0, 60)} lies over ${other.slice(0, 60)}`));
}"""
CRAMPED: Final = """() => [...document.querySelectorAll("input:not([type=radio], [type=checkbox], [type=hidden]), select")].filter(
    each => each.checkVisibility() && each.clientWidth && each.clientWidth < 6 * parseFloat(getComputedStyle(each).fontSize)).map(each => each.outerHTML)"""
MOVING: Final = """() => [...document.querySelectorAll("*")].flatMap(each => ["", "::before", "::after"].map(
    part => [each, part, getComputedStyle(each, part)])).filter(([, , style]) =>
    style.animationName !== "none" || style.transitionDuration !== "0s" || style.scrollBehavior !== "auto"
).map(([each, part]) => each.outerHTML.slice(0, 120) + part)"""
LIVELY: Final = """() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`@keyframes turning { to { rotate: 1turn; } }
        html { scroll-behavior: smooth; }
        .button { transition: background 1s; }
        .brand img { animation: turning 1s infinite; }`);
    document.adoptedStyleSheets = [sheet];
}"""
"""what a theme may add"""
UNMARKED: Final = """() => {
    const drawn = (style, side) => style[`border${side}Style`] !== "none" && parseFloat(style[`border${side}Width`]) >= 1;
    const edged = each => ["Top", "Right", "Bottom", "Left"].every(side => drawn(getComputedStyle(each), side));
    const boxes = ".button, .choice, .tag, .error-summary, .card, select, input:not([type=radio], [type=checkbox], [type=hidden])";
    const ringed = each => parseFloat(getComputedStyle(each).outlineWidth) >= 2 && getComputedStyle(each).outlineStyle === "solid";
    const plain = document.querySelector(".button-secondary"), main = document.querySelector(".button:not(.button-secondary, .button-quiet)");
    const background = each => getComputedStyle(each).backgroundColor;
    return [
        ...[...document.querySelectorAll(boxes)].filter(each => each.checkVisibility() && !edged(each) && !each.closest(".card .card")),
        ...[...document.querySelectorAll(".choice:has(:checked)")].filter(each => !ringed(each)),
        ...(plain && main && background(plain) === background(main) ? [main] : []),
    ].map(each => each.outerHTML.slice(0, 120));
}"""
"""what has no edge where a system's own colours leave no backgrounds, and what is chosen or comes first and does not show it"""
FOCUSABLE: Final = """() => {
    return [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")].filter(each => {
        if (each.disabled || each.type === "hidden" || each.tabIndex < 0 || !each.checkVisibility()) return false;
        if (each.type !== "radio") return true;
        const group = [...document.getElementsByName(each.name)];
        return each === (group.find(one => one.checked) ?? group.find(one => !one.disabled));
    });
}"""
"""in the order of the Tab key"""
STOPS: Final = f"() => ({FOCUSABLE})().map(each => each.outerHTML.slice(0, 160))"
FOCUSED: Final = """() => {
    const each = document.activeElement;
    if (!each || each === document.body) return null;
    const framed = each.closest(".choice, .select label") ?? each;
    const ringed = style => style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
    const box = each.getBoundingClientRect();
    const top = document.elementFromPoint(box.x + box.width / 2, box.y + Math.min(box.height, innerHeight) / 2);
    return {
        html: each.outerHTML.slice(0, 160),
        ring: [framed, each].some(one => ringed(getComputedStyle(one))),
        seen: !!top && (framed.contains(top) || top.contains(each)),
    };
}"""

OUT_OF_SIGHT: Final = f"""() => {{
    const stops = ({FOCUSABLE})(), focused = {FOCUSED};
    const hidden = each => (each.focus(), !focused()?.seen);
    const shown = found => found.map(each => each.outerHTML.slice(0, 160));
    return {{ forwards: shown(stops.filter(hidden)), backwards: shown(stops.slice(0, -1).reverse().filter(hidden)) }};
}}"""
"""what is out of sight when it gets the focus, which brings it into sight as the Tab key does"""
REMEMBERING: Final = f"""() => {{
    const focused = {FOCUSED};
    window.stops ??= addEventListener("keyup", pressed => pressed.key === "Tab" && stops.push(focused())) ?? [];
    stops.length = 0;
}}"""
"""a page that remembers what has the focus after each Tab, so that nobody has to ask each time"""
TO_THE_TOP: Final = "document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')"

FURTHER_PARTS_OF_DATE: Final = 3
"""stops of the Tab key in one field for a date beside its day: month, year and the calendar"""

every_state = pytest.mark.parametrize("state", STATES)


@pytest.fixture(scope="module", params=WALKS_OR_FULL)
def state(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def opened(developer_beholder: Beholder, state: str) -> Page:
    """The page of a state, opened once for the tests that only look at it or press the tab key."""
    page = developer_beholder.look(state, PLAIN)
    if getattr(STATES[state], "errors", ()):
        # autofocus comes with the first picture that the browser makes of the page
        expect(page.locator(".error-summary")).to_be_focused()
    return page


@contextmanager
def letters(page: Page, size: int) -> Iterator[None]:
    """A browser whose reader has set this text size, in CSS pixels."""
    session = page.context.new_cdp_session(page)
    for each in (size, TEXT_SIZE):
        session.send("Page.setFontSizes", {"fontSizes": {"standard": each, "fixed": each}})
        if each == size:
            yield
    session.detach()


def press(page: Page, key: str, times: int) -> list[Any]:
    """What has the focus after each press of a key, which is Tab or Shift+Tab."""
    page.evaluate(REMEMBERING)
    for _ in range(times):
        page.keyboard.press(key)
    found = list(page.evaluate("stops"))
    assert len(found) == times
    return found


def test_axe_finds_nothing(opened: Page) -> None:
    found = complaints(shown_as(opened, PLAIN))
    assert not found, listed(found)


@pytest.mark.full
def test_nothing_hangs_out_or_is_cut_off_at_400_percent(opened: Page) -> None:
    """WCAG 1.4.10, and 1.4.12 with the widest spacing of text that a reader may set; targets of 44 pixels."""
    page = shown_as(opened, ZOOMED)
    found = [*page.evaluate(OUTSIDE), *page.evaluate(CUT), *page.evaluate(SMALL)]
    page.evaluate(SPACED)
    found += [f"spaced: {each}" for each in (*page.evaluate(OUTSIDE), *page.evaluate(CUT))]
    page.evaluate(UNSPACED)
    assert not found, listed(found)


@pytest.mark.full
@pytest.mark.parametrize("window", LARGE, ids=lambda each: each.name)
def test_nothing_hangs_out_is_cut_off_or_overlaps_with_text_of_200_percent(opened: Page, window: Appearance) -> None:
    """WCAG 1.4.4: a browser that is set to letters of twice the size, on a laptop and on a phone."""
    page = shown_as(opened, window)
    with letters(page, 2 * TEXT_SIZE):
        found = [*page.evaluate(OUTSIDE), *page.evaluate(CUT), *page.evaluate(OVERLAPPING), *page.evaluate(CRAMPED)]
        scrolls = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert not found, listed(found)
    assert not scrolls


@pytest.mark.full
@every_state
def test_the_longest_words_fit_a_phone_with_text_of_200_percent(developer_beholder: Beholder, state: str) -> None:
    """WCAG 1.4.4, 1.4.10."""
    page = developer_beholder.look(state, replace(WORDY, width=375, height=667))
    with letters(page, 2 * TEXT_SIZE):
        found = [*page.evaluate(OUTSIDE), *page.evaluate(CUT), *page.evaluate(OVERLAPPING), *page.evaluate(CRAMPED)]
    assert not found, listed(found)


@pytest.mark.full
def test_nothing_moves_where_the_system_asks_for_less_motion(opened: Page) -> None:
    """WCAG 2.3.3, whatever a theme adds."""
    found = opened.evaluate(MOVING)
    opened.evaluate(LIVELY)
    found += opened.evaluate(MOVING)
    opened.evaluate(UNSPACED)
    assert not found, listed(found)


@pytest.mark.full
def test_edges_and_choices_are_seen_in_the_colours_of_the_system(opened: Page) -> None:
    """WCAG 1.4.11: no background and no shadow is left there."""
    page = shown_as(opened, FORCED)
    found = page.evaluate(UNMARKED)
    shown_as(page, PLAIN)
    assert not found, listed(found)


@pytest.mark.full
@pytest.mark.parametrize("window", [ZOOMED, ROTATED], ids=lambda each: each.name)
def test_what_has_the_focus_is_in_sight_at_200_and_400_percent(opened: Page, window: Appearance) -> None:
    """WCAG 2.4.11: forwards and backwards, beside what sticks to an edge of the window."""
    page = shown_as(opened, window)
    page.evaluate(TO_THE_TOP)
    for direction, hidden in page.evaluate(OUT_OF_SIGHT).items():
        assert not hidden, f"{direction}: out of sight, or covered: {listed(hidden)}"


@pytest.mark.full
def test_the_tab_key_leads_through_everything_in_reading_order_and_out_again(opened: Page) -> None:
    """WCAG 2.1.1, 2.1.2, 2.4.3, 2.4.7, 2.4.11, also where a system puts its own colours."""
    page = shown_as(opened, FORCED)
    # from the top of the page, also where its error summary had the focus
    page.evaluate(TO_THE_TOP)
    expected, reached = page.evaluate(STOPS), list[str]()
    dates = sum('type="date"' in each for each in expected)
    for focused in press(page, "Tab", len(expected) + FURTHER_PARTS_OF_DATE * dates):
        assert focused["ring"], f"the focus cannot be seen: {focused['html']}"
        assert focused["seen"], f"something covers what has the focus: {focused['html']}"
        if not (
            'type="date"' in focused["html"] and reached[-1:] == [focused["html"]]
        ):  # another part of the same field
            reached.append(focused["html"])
    assert reached == expected
    page.keyboard.press("Tab")
    after = page.evaluate(FOCUSED)
    assert after is None or after["html"] == expected[0]


@pytest.mark.full
@pytest.mark.parametrize("appearance", [ZOOMED, WORDY], ids=lambda each: each.name)
@pytest.mark.parametrize(
    "state",
    ["sign-in-warned", "sign-in-over", "choose-warned"],
)
def test_the_note_about_time_never_covers_what_has_the_focus(
    developer_beholder: Beholder, state: str, appearance: Appearance
) -> None:
    """WCAG 2.4.11: backwards, where the focus comes from below."""
    page = developer_beholder.look(state, appearance)
    page.locator(".foot a").last.focus()
    for focused in press(page, "Shift+Tab", len(page.evaluate(STOPS)) - 1):
        assert focused["seen"], f"something covers what has the focus: {focused['html']}"


@pytest.mark.full
@pytest.mark.parametrize("appearance", [ZOOMED, WORDY], ids=lambda each: each.name)
def test_the_note_about_time_does_not_come_to_lie_over_what_is_typed(
    developer_beholder: Beholder, appearance: Appearance
) -> None:
    """WCAG 2.4.11: the field has the focus before the note appears."""
    page = developer_beholder.look("sign-in-refused", appearance)
    page.clock.install()
    page.reload()
    field = page.locator("#password")
    field.focus()
    field.evaluate("each => scrollBy(0, each.getBoundingClientRect().top - 20)")
    page.clock.fast_forward((600 - TimeLimit.warn_seconds + 2) * 1000)
    page.locator("#time-warning > *").first.wait_for()
    assert page.evaluate(FOCUSED)["seen"]


@pytest.mark.parametrize("state", ["portal-home", "console-overview"])
def test_the_first_stop_of_a_page_with_navigation_leads_past_it(beholder: Beholder, state: str) -> None:
    """WCAG 2.4.1: seen once it has the focus; the next stop is in the content."""
    page = beholder.look(state, PLAIN)
    page.evaluate(TO_THE_TOP)
    page.keyboard.press("Tab")
    link = page.get_by_role("link", name="Skip to content")
    expect(link).to_be_focused()
    expect(link).to_be_in_viewport(ratio=1)
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")
    expect(link).not_to_be_in_viewport()


@pytest.mark.parametrize("state", ["portal-home", "console-overview"])
def test_a_phone_has_one_line_with_a_menu_that_needs_no_script(developer_beholder: Beholder, state: str) -> None:
    """WCAG 1.4.10, 2.5.5: sections, person and sign-out are in it; without it a heading stands in the upper seventh."""
    page = developer_beholder.look(state, replace(PLAIN, width=375, height=812))
    top, mark = (page.locator(each).bounding_box() for each in ("h1", ".developer"))
    assert top and mark and top["y"] - mark["height"] <= 120
    page.locator(".menu > summary").click()
    expect(page.get_by_role("link", name="Sign out")).to_be_in_viewport()
    expect(page.get_by_role("navigation").first.get_by_role("link")).to_have_count(
        len(STATES[state].frame.navigation.links)  # type: ignore[union-attr]
    )
    found = [*page.evaluate(OUTSIDE), *page.evaluate(CUT), *page.evaluate(SMALL), *complaints(page)]
    assert not found, listed(found)


@pytest.mark.parametrize("state", ["portal-home", "console-overview"])
def test_a_wide_screen_shows_the_sections_beside_the_page(developer_beholder: Beholder, state: str) -> None:
    """WCAG 1.3.2: without opening anything, and with nothing that axe complains about."""
    page = developer_beholder.look(state, replace(PLAIN, width=1280))
    expect(page.locator(".menu > summary")).to_be_hidden()
    expect(page.get_by_role("link", name="Sign out")).to_be_visible()
    sections = page.get_by_role("navigation").first.bounding_box()
    heading = page.get_by_role("heading", level=1).bounding_box()
    assert sections and heading and sections["x"] + sections["width"] < heading["x"]
    found = [*page.evaluate(OUTSIDE), *complaints(page)]
    assert not found, listed(found)
