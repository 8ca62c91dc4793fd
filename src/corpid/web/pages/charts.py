"""Bar charts as SVG, with the same numbers as a table.

The SVG has bars and lines only, no text, no style and no script, so that it meets the content security policy and
stretches to any width; words and scale stand around it as text of the page, in the reader's size. Colours come from
the style sheet. It is drawn with the standard library: pygal puts a style element and a script into each chart, which
the policy refuses, and leather fixed colours and no names for screen readers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from babel.dates import format_skeleton, format_time
from markupsafe import Markup

from corpid.texts import Phrase, phrase
from corpid.web.pages.components import Chart, Series, ViewPart

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from corpid.web.pages.translations import Translator

_HEIGHT: Final = 100
"""of the drawing, in its own units; a bar and the gap after it are one wide"""
_BAR: Final = 0.8
_FEWEST: Final = 8
"""places for bars, so that a single one does not fill the chart"""
_SCALES: Final = (1, 2, 4, 6, 8, 10)
_TICKS: Final = (7, 6, 5, 4, 3, 2)
"""parts into which the time below a chart may be divided"""


class Panel(ViewPart, frozen=True, kw_only=True):
    """A series of a chart, drawn with a scale of its own."""

    title: Phrase
    summary: Phrase
    """its total and its highest number"""
    svg: Markup
    """empty if there is nothing to draw"""
    scale: Sequence[str]
    """from top to bottom, in equal distances"""


class Drawing(ViewPart, frozen=True, kw_only=True):
    """A chart in one language."""

    panels: Sequence[Panel]
    """one below another, over the same time"""
    column: Phrase
    """heading of the column of hours or days"""
    ticks: Sequence[str]
    """from left to right, at the beginning of parts of equal width; empty if nothing is drawn"""
    rows: Sequence[tuple[str, Sequence[str]]]
    """the table: hour or day, and a number of each series"""


def draw_chart(chart: Chart, voice: Translator) -> Drawing:
    """Draw a chart in the language of a page."""
    beginnings = chart.beginnings
    places = max(len(beginnings), _FEWEST)
    parts = next((each for each in _TICKS if places % each == 0), 1)
    begins = range(0, places, places // parts)
    panels = [_panel(chart, number, voice, begins=begins, places=places) for number in range(len(chart.series))]
    ticks = [_tick(beginnings[at], chart, voice) if at < len(beginnings) else "" for at in begins]
    numbers = zip(*(each.values for each in chart.series), strict=True)
    return Drawing(
        panels=panels,
        column=phrase("Hour from") if chart.by_hour else phrase("Day"),
        ticks=ticks if any(each.svg for each in panels) else (),
        rows=[
            (voice.moment(at) if chart.by_hour else voice.day(at), [voice.number(each) for each in row])
            for at, row in zip(beginnings, numbers, strict=True)
        ],
    )


def _panel(chart: Chart, number: int, voice: Translator, *, begins: range, places: int) -> Panel:
    series = chart.series[number]
    most = max(series.values, default=0)
    top = _top(most)
    scale = (top, top // 2, 0) if top > 1 else (top, 0)
    total = sum(series.values)
    summary = phrase("Total: {total}. Highest: {most}.", total=total, most=most) if most else phrase("None.")
    name = f"{chart.name}-{number}"
    svg = _svg(series, name, voice, summary, top=top, lines=len(scale) - 1, begins=begins, places=places)
    return Panel(
        title=series.title,
        summary=summary,
        svg=svg if most else Markup(),
        scale=[voice.number(each) for each in scale],
    )


def _top(most: int) -> int:
    """The next number that is round, and so is its half."""
    unit = int(f"1{'0' * (len(str(most)) - 1)}") if most else 1
    return next(each * unit for each in _SCALES if each * unit >= most)


def _svg(
    series: Series, name: str, voice: Translator, summary: Phrase, *, top: int, lines: int, begins: range, places: int
) -> Markup:
    """An image with a name and a description (WCAG 1.1.1)."""
    from xml.etree import ElementTree as ET  # noqa: PLC0415 - few pages have a chart

    named, described = f"{name}-title", f"{name}-summary"
    root = ET.Element(
        "svg",
        {
            "viewBox": f"0 0 {places} {_HEIGHT}",
            "preserveAspectRatio": "none",
            "role": "img",
            "aria-labelledby": named,
            "aria-describedby": described,
        },
    )
    ET.SubElement(root, "title", {"id": named}).text = voice.say(series.title)
    ET.SubElement(root, "desc", {"id": described}).text = voice.say(summary)
    levels = (f"M0 {_HEIGHT * each // lines}H{places}" for each in range(lines + 1))
    starts = (f"M{at} 0V{_HEIGHT}" for at in begins)
    ET.SubElement(
        root, "path", {"class": "chart-lines", "d": "".join((*levels, *starts)), "vector-effect": "non-scaling-stroke"}
    )
    ET.SubElement(root, "path", {"class": f"chart-bars chart-{series.colour}", "d": "".join(_bars(series, top))})
    return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704 - escaped by the library


def _bars(series: Series, top: int) -> Iterator[str]:
    for at, value in enumerate(series.values):
        if value:
            yield f"M{at} {_HEIGHT}V{_HEIGHT - _HEIGHT * value / top:.4g}h{_BAR}V{_HEIGHT}Z"


def _tick(at: datetime, chart: Chart, voice: Translator) -> str:
    formats = voice.language.formats
    day = _unbroken(format_skeleton("MMMd", at, locale=formats))
    return f"{day} {_unbroken(format_time(at, 'short', locale=formats))}" if chart.by_hour else day


def _unbroken(text: object) -> str:
    """A text that no line ends inside of."""
    return str(text).replace(" ", "\N{NO-BREAK SPACE}")
