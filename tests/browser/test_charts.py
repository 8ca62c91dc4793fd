"""Charts in Chromium: axe-core finds nothing, and the page's policy refuses nothing (WCAG 2.2 AA, D36)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

import pytest

from corpid.rules.hourly_counts import Point
from corpid.rules.limits import DAY, HOUR
from corpid.texts import phrase
from corpid.web.pages.components import BARE, Chart, NavigationLink, Page, Series, Tabs
from corpid.web.pages.rendering import Renderer
from corpid.web.pages.translations import ENGLISH, LANGUAGES, PSEUDO
from tests.browser.gallery import CUT, OUTSIDE, Appearance, Beholder, complaints, served
from tests.house.source import listed
from tests.tiers import first_or_full

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

pytestmark = pytest.mark.full

NOW: Final = int(datetime(2026, 11, 22, 9, tzinfo=UTC).timestamp())
APPEARANCES: Final = (
    *(Appearance(language=language, scheme="light", width=1280) for language in LANGUAGES),
    Appearance(scheme="dark", width=1280),
    Appearance(scheme="dark", width=375, height=667),
    Appearance(language=LANGUAGES[-1], width=320, height=640),
    Appearance(language=PSEUDO, scheme="dark", width=320, height=640),
    Appearance(forced_colors="active"),
)


def made(count: int, seconds: int) -> list[Point]:
    """Numbers that rise and fall as those of weeks and days do; the last ones have five digits."""
    return [
        Point(
            begins_at=NOW - (count - 1 - at) * seconds,
            sign_ins=(at * 37 % 101) * (at % 24) ** 2,
            refusals=at % 17 if at % 5 == 0 else 0,
        )
        for at in range(count)
    ]


def chart(name: str, points: list[Point], *, by_hour: bool) -> Chart:
    return Chart(
        name=name,
        title=phrase("{text}", text=f"Sign-ins and refusals, {name}"),
        by_hour=by_hour,
        beginnings=[datetime.fromtimestamp(each.begins_at, ZoneInfo("Asia/Singapore")) for each in points],
        series=(
            Series(
                title=phrase("Completed sign-ins per hour"), values=[each.sign_ins for each in points], colour="good"
            ),
            Series(title=phrase("Refused requests per hour"), values=[each.refusals for each in points], colour="bad"),
        ),
        ranges=Tabs(
            label=phrase("Time range"),
            links=(
                NavigationLink(url="/1", text=phrase("Today")),
                NavigationLink(url="/2", text=phrase("7 days"), current=True),
            ),
        )
        if name == "week"
        else None,
    )


def charts() -> Page:
    return Page(
        frame=BARE,
        heading=phrase("Overview"),
        parts=(
            chart("week", made(168, HOUR), by_hour=True),
            chart("quarter", made(90, DAY), by_hour=False),
            chart("first", [Point(begins_at=NOW, sign_ins=1, refusals=0)], by_hour=False),
            chart("none", [], by_hour=False),
        ),
    )


@pytest.fixture(scope="module")
def page_of_charts(chromium: Browser) -> Iterator[Beholder]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tests.browser.gallery.STATES", {"charts": charts()})
        with served(Renderer(developer_mode=True)) as address:
            yield Beholder(browser=chromium, address=address)


@pytest.mark.parametrize(
    "appearance",
    first_or_full(APPEARANCES),
    ids=lambda each: each.name,
)
def test_axe_finds_nothing_and_nothing_hangs_out(page_of_charts: Beholder, appearance: Appearance) -> None:
    """Also with the tables open."""
    page = page_of_charts.look("charts", appearance)
    found = complaints(page)
    page.evaluate("() => document.querySelectorAll('details').forEach(each => { each.open = true; })")
    found += [*complaints(page), *page.evaluate(OUTSIDE), *page.evaluate(CUT)]
    assert not found, listed(found)
    assert page.locator("svg[role=img]").count() == 5


def test_the_policy_of_pages_refuses_nothing_and_the_colours_follow_the_system(page_of_charts: Beholder) -> None:
    """D36."""
    page = page_of_charts.look("charts", Appearance())
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.reload()
    colour = "() => getComputedStyle(document.querySelector('.chart-bars')).fill"
    light = page.evaluate(colour)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(colour) != light
    assert refused == []


def test_a_screen_reader_is_given_an_image_and_a_table(page_of_charts: Beholder) -> None:
    """WCAG 1.1.1."""
    page = page_of_charts.look("charts", Appearance(language=ENGLISH, width=1000))
    image = page.get_by_role("img", name="Refused requests per hour").first
    assert image.get_attribute("aria-describedby") == "week-1-summary"
    page.get_by_text("Show the numbers").first.click()
    table = page.get_by_role("table", name="Sign-ins and refusals, week")
    assert table.get_by_role("row").count() == 169
    assert table.get_by_role("columnheader", name="Refused requests per hour").count() == 1
