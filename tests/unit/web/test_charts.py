"""Charts: a drawing, and the same numbers as a table (WCAG 1.1.1, 1.4.1; docs/accessibility.md)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from corpid.texts import Phrase, phrase
from corpid.web.pages.charts import Drawing, Panel, draw_chart
from corpid.web.pages.components import Chart, Series
from corpid.web.pages.translations import ENGLISH, LANGUAGES, PSEUDO, Language, Translator, translator

BEGIN = datetime(2026, 8, 24, tzinfo=UTC)
VOICE = translator(ENGLISH)


TITLE = phrase("Refused requests per day")


def chart(*numbers: int, by_hour: bool = False, title: Phrase = TITLE) -> Chart:
    apart = timedelta(hours=1) if by_hour else timedelta(days=1)
    return Chart(
        name="one",
        title=phrase("Sign-ins and refusals"),
        by_hour=by_hour,
        beginnings=[BEGIN + apart * at for at in range(len(numbers))],
        series=(Series(title=title, values=numbers, colour="bad"),),
    )


def drawn(given: Chart, voice: Translator = VOICE) -> tuple[Drawing, Panel]:
    """A chart of one series."""
    drawing = draw_chart(given, voice)
    [panel] = drawing.panels
    return drawing, panel


@pytest.mark.parametrize("numbers", [(), (0,), (0,) * 90])
def test_without_numbers_there_is_a_sentence_and_no_drawing(numbers: tuple[int, ...]) -> None:
    drawing, panel = drawn(chart(*numbers))
    assert (panel.summary, panel.svg, drawing.ticks) == ("None.", "", ())


def test_one_number_is_a_bar_that_does_not_fill_the_chart() -> None:
    drawing, panel = drawn(chart(7))
    root = ET.fromstring(panel.svg)
    assert root.attrib["viewBox"] == "0 0 8 100"
    assert root.findall("path")[1].attrib["d"] == "M0 100V12.5h0.8V100Z"
    assert (panel.scale, drawing.ticks[0], set(drawing.ticks[1:])) == (
        ["8", "4", "0"],
        "24\N{NO-BREAK SPACE}Aug",
        {""},
    )
    assert drawing.rows == [("24 Aug 2026", ["7"])]


def test_the_drawing_has_a_bar_for_each_number_and_the_table_a_row() -> None:
    numbers = [number * 17 for number in range(90)]
    drawing, panel = drawn(chart(*numbers))
    bars = ET.fromstring(panel.svg).findall("path")[1].attrib["d"]
    assert bars.count("Z") == 89, "zero has no bar"
    assert [int(number.replace(",", "")) for _, [number] in drawing.rows] == numbers
    assert drawing.rows[-1] == ("21 Nov 2026", ["1,513"])
    assert panel.scale == ["2,000", "1,000", "0"]
    assert len(drawing.ticks) == 6


def test_it_is_an_image_with_name_and_description() -> None:
    """WCAG 1.1.1."""
    root = ET.fromstring(drawn(chart(3, 1000))[1].svg)
    texts = {each.attrib["id"]: each.text for each in root if "id" in each.attrib}
    assert root.attrib["role"] == "img"
    assert texts[root.attrib["aria-labelledby"]] == "Refused requests per day"
    assert texts[root.attrib["aria-describedby"]] == "Total: 1,003. Highest: 1,000."


def test_nothing_in_it_needs_more_than_the_pages_policy_allows() -> None:
    """D36: neither style nor script, and nothing that is loaded."""
    root = ET.fromstring(drawn(chart(3, 1000))[1].svg)
    names = {name for each in root.iter() for name in each.attrib}
    assert {each.tag for each in root.iter()} == {"svg", "title", "desc", "path"}
    assert not [name for name in names if name == "style" or name.startswith("on") or name.endswith("href")]
    assert "fill" not in names, "colours are those of the style sheet, light and dark"


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda each: each.tag)
def test_it_is_drawn_in_every_language(language: Language) -> None:
    voice = translator(language)
    drawing, panel = drawn(chart(*range(1200, 1368), by_hour=True), voice)
    assert drawing.rows[0] == (voice.moment(BEGIN), [voice.number(1200)])
    if language is not ENGLISH and not language.partial:
        assert voice.say(panel.summary) != panel.summary
        assert voice.say(panel.title) != panel.title
    assert voice.say(panel.title) in panel.svg


def test_a_text_is_escaped() -> None:
    voice = translator(PSEUDO)
    assert "a &lt; b &amp; c" in drawn(chart(1, title=phrase("a < b & c")), voice)[1].svg


def test_series_have_scales_of_their_own_over_the_same_time() -> None:
    """Refusals are few."""
    one = chart(1000, 2000)
    both = replace(
        one, series=(*one.series, Series(title=phrase("Completed sign-ins per day"), values=(1, 2), colour="good"))
    )
    drawing = draw_chart(both, VOICE)
    assert [panel.scale for panel in drawing.panels] == [["2,000", "1,000", "0"], ["2", "1", "0"]]
    assert drawing.rows[1] == ("25 Aug 2026", ["2,000", "2"])
    ids = [each.attrib["id"] for panel in drawing.panels for each in ET.fromstring(panel.svg) if "id" in each.attrib]
    assert len(set(ids)) == 4
