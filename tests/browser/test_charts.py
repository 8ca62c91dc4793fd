"""Charts in Chromium: axe-core finds nothing, and the page's policy refuses nothing (WCAG 2.2 AA, D36)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, Final
from zoneinfo import ZoneInfo

import pytest
from jinja2 import ChoiceLoader, DictLoader

from corpid.rules.hourly_counts import Point
from corpid.rules.limits import DAY, HOUR
from corpid.texts import phrase
from corpid.web.pages.charts import of_traffic
from corpid.web.pages.layout import BARE, PageView
from corpid.web.pages.rendering import Renderer
from corpid.web.pages.translations import ENGLISH, LANGUAGES, PSEUDO
from tests.browser.gallery import CUT, OUTSIDE, Appearance, Beholder, complaints, served
from tests.browser.states import STATES
from tests.house.source import listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinja2 import Environment
    from playwright.sync_api import Browser

    from corpid.texts import Phrase
    from corpid.web.pages.charts import Chart
    from corpid.web.pages.translations import Language

NOW: Final = int(datetime(2026, 11, 22, 9, tzinfo=UTC).timestamp())
PAGE: Final = """{% extends "base.html" %}{% import "_charts.html" as charts with context %}
{% block content %}{% for each in view.charts %}{{ charts.figure(each) }}{% endfor %}{% endblock %}"""
APPEARANCES: Final = (
    *(Appearance(language=language, scheme="light", width=1280) for language in LANGUAGES),
    Appearance(scheme="dark", width=1280),
    Appearance(scheme="dark", width=375, height=667),
    Appearance(language=LANGUAGES[-1], width=320, height=640),
    Appearance(language=PSEUDO, scheme="dark", width=320, height=640),
    Appearance(forced_colors="active"),
)
DIFFERENT: Final = (APPEARANCES[0], *APPEARANCES[-2:])
"""those of `make test`"""


class Charts(PageView, frozen=True, kw_only=True):
    """A page of charts."""

    template: ClassVar[str] = "charts.html"
    heading: ClassVar[Phrase] = phrase("Show the numbers")
    charts: tuple[Chart, ...]


class WithPage(Renderer):
    """A renderer that knows the page of charts."""

    def _environment(self, language: Language) -> Environment:
        environment = super()._environment(language)
        assert environment.loader is not None
        environment.loader = ChoiceLoader([environment.loader, DictLoader({"charts.html": PAGE})])
        return environment


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


def charts() -> tuple[Chart, ...]:
    zone = ZoneInfo("Asia/Singapore")
    return (
        *of_traffic(made(168, HOUR), "hour", name="week", zone=zone),
        *of_traffic(made(90, DAY), "day", name="quarter", zone=zone),
        *of_traffic([Point(begins_at=NOW, sign_ins=1, refusals=0)], "day", name="first", zone=zone),
        *of_traffic([], "day", name="none", zone=zone),
    )


@pytest.fixture(scope="module")
def page_of_charts(chromium: Browser) -> Iterator[Beholder]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(STATES, "charts", Charts(frame=BARE, charts=charts()))
        with served(WithPage(developer_mode=True)) as address:
            yield Beholder(browser=chromium, address=address, with_axe=True)


@pytest.mark.parametrize(
    "appearance",
    [each if each in DIFFERENT else pytest.param(each, marks=pytest.mark.full) for each in APPEARANCES],
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
    image = page.get_by_role("img", name="Refused requests per hour")
    assert image.get_attribute("aria-describedby") == "week-refusals-summary"
    numbers = page.get_by_text("Show the numbers: Refused requests per hour")
    numbers.click()
    assert page.get_by_role("table", name="Refused requests per hour").get_by_role("row").count() == 169
