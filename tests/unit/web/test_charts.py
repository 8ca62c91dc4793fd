"""Charts: a drawing, and the same numbers as a table (WCAG 1.1.1, 1.4.1; docs/accessibility.md)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET
from zoneinfo import ZoneInfo

import pytest

from corpid.rules.hourly_counts import Point
from corpid.texts import phrase
from corpid.web.pages.charts import Chart, draw_chart, of_traffic
from corpid.web.pages.translations import ENGLISH, LANGUAGES, PSEUDO, translator

BEGIN = datetime(2026, 8, 24, tzinfo=UTC)
VOICE = translator(ENGLISH)


def chart(*numbers: int, step: str = "day") -> Chart:
    apart = timedelta(days=1) if step == "day" else timedelta(hours=1)
    values = [(BEGIN + apart * at, number) for at, number in enumerate(numbers)]
    return Chart(name="one", title=phrase("Refused requests per day"), step=step, colour="bad", values=values)  # type: ignore[arg-type]


@pytest.mark.parametrize("numbers", [(), (0,), (0,) * 90])
def test_without_numbers_there_is_a_sentence_and_no_drawing(numbers: tuple[int, ...]) -> None:
    drawing = draw_chart(chart(*numbers), VOICE)
    assert (drawing.summary, drawing.svg) == ("None.", "")


def test_one_number_is_a_bar_that_does_not_fill_the_chart() -> None:
    drawing = draw_chart(chart(7), VOICE)
    root = ET.fromstring(drawing.svg)
    assert root.attrib["viewBox"] == "0 0 8 100"
    assert root.findall("path")[1].attrib["d"] == "M0 100V12.5h0.8V100Z"
    assert (drawing.scale, drawing.ticks[0], set(drawing.ticks[1:])) == (
        ["8", "4", "0"],
        "24\N{NO-BREAK SPACE}Aug",
        {""},
    )
    assert drawing.rows == [("24 Aug 2026", "7")]


def test_the_drawing_has_a_bar_for_each_number_and_the_table_a_row() -> None:
    numbers = [number * 17 for number in range(90)]
    drawing = draw_chart(chart(*numbers), VOICE)
    bars = ET.fromstring(drawing.svg).findall("path")[1].attrib["d"]
    assert bars.count("Z") == 89, "zero has no bar"
    assert [int(number.replace(",", "")) for _, number in drawing.rows] == numbers
    assert drawing.rows[-1] == ("21 Nov 2026", "1,513")
    assert drawing.scale == ["2,000", "1,000", "0"]
    assert len(drawing.ticks) == 6


def test_it_is_an_image_with_name_and_description() -> None:
    """WCAG 1.1.1."""
    root = ET.fromstring(draw_chart(chart(3, 1000), VOICE).svg)
    texts = {each.attrib["id"]: each.text for each in root if "id" in each.attrib}
    assert root.attrib["role"] == "img"
    assert texts[root.attrib["aria-labelledby"]] == "Refused requests per day"
    assert texts[root.attrib["aria-describedby"]] == "Total: 1,003. Highest: 1,000."


def test_nothing_in_it_needs_more_than_the_pages_policy_allows() -> None:
    """D36: neither style nor script, and nothing that is loaded."""
    root = ET.fromstring(draw_chart(chart(3, 1000), VOICE).svg)
    names = {name for each in root.iter() for name in each.attrib}
    assert {each.tag for each in root.iter()} == {"svg", "title", "desc", "path"}
    assert not [name for name in names if name == "style" or name.startswith("on") or name.endswith("href")]
    assert "fill" not in names, "colours are those of the style sheet, light and dark"


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda each: each.tag)
def test_it_is_drawn_in_every_language(language: type(ENGLISH)) -> None:  # type: ignore[valid-type]
    voice = translator(language)
    drawing = draw_chart(chart(*range(1200, 1368), step="hour"), voice)
    assert drawing.rows[0] == (voice.moment(BEGIN), voice.number(1200))
    if language is not ENGLISH:
        assert voice.say(drawing.summary) != drawing.summary
        assert voice.say(drawing.title) != drawing.title
    assert voice.say(drawing.title) in drawing.svg


def test_a_text_is_escaped() -> None:
    voice = translator(PSEUDO)
    given = Chart(name="one", title=phrase("a < b & c"), step="day", colour="good", values=[(BEGIN, 1)])
    assert "a &lt; b &amp; c" in draw_chart(given, voice).svg


def test_hours_and_days_are_those_of_the_deployments_time_zone() -> None:
    """D23."""
    zone = ZoneInfo("Asia/Singapore")
    at = int(datetime(2026, 11, 5, 17, tzinfo=UTC).timestamp())
    sign_ins, refusals = of_traffic([Point(begins_at=at, sign_ins=2, refusals=1)], "hour", name="week", zone=zone)
    drawing = draw_chart(refusals, VOICE)
    assert sign_ins.name != refusals.name
    assert drawing.rows == [("6 Nov 2026, 01:00 Singapore Standard Time", "1")]
    assert (sign_ins.values[0][1], refusals.values[0][1]) == (2, 1)
