"""Bar charts as SVG, with the same numbers as a table.

The SVG has bars and lines only, no text, no style and no script, so that it meets the content security policy and
stretches to any width; words and scale stand around it as text of the page, in the reader's size. Colours come from
the style sheet. It is drawn with the standard library: pygal puts a style element and a script into each chart, which
the policy refuses, and leather fixed colours and no names for screen readers.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

from babel.dates import format_skeleton, format_time
from markupsafe import Markup

from corpid.texts import phrase
from corpid.web.pages.layout import ViewPart

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

    from corpid.rules.hourly_counts import Point
    from corpid.texts import Phrase
    from corpid.web.pages.translations import Translator

_HEIGHT: Final = 100
"""of the drawing, in its own units; a bar and the gap after it are one wide"""
_BAR: Final = 0.8
_FEWEST: Final = 8
"""places for bars, so that a single one does not fill the chart"""
_SCALES: Final = (1, 2, 4, 6, 8, 10)
_TICKS: Final = (7, 6, 5, 4, 3, 2)
"""parts into which the time below a chart may be divided"""

Step = Literal["hour", "day"]
Colour = Literal["good", "bad"]


class Chart(ViewPart, frozen=True, kw_only=True):
    """A series of numbers, one for each hour or day."""

    name: str
    """unique on the page, for identifiers"""
    title: Phrase
    step: Step
    colour: Colour
    values: Sequence[tuple[datetime, int]]
    """the beginning of each hour or day, in the time zone to be shown"""


class Drawing(ViewPart, frozen=True, kw_only=True):
    """A chart in one language."""

    title: Phrase
    summary: Phrase
    """its total and its highest number"""
    column: Phrase
    """heading of the column of hours or days"""
    svg: Markup
    """empty if there is nothing to draw"""
    colour: Colour
    scale: Sequence[str]
    """from top to bottom, in equal distances"""
    ticks: Sequence[str]
    """from left to right, at the beginning of parts of equal width"""
    rows: Sequence[tuple[str, str]]
    """the table: hour or day, and number"""


def of_traffic(points: Sequence[Point], step: Step, *, name: str, zone: tzinfo) -> tuple[Chart, Chart]:
    """Charts of completed sign-ins and of refusals.

    Each has a scale of its own, since refusals are few.
    """
    beginnings = [datetime.fromtimestamp(each.begins_at, UTC).astimezone(zone) for each in points]
    by_hour = step == "hour"
    sign_ins = phrase("Completed sign-ins per hour") if by_hour else phrase("Completed sign-ins per day")
    refusals = phrase("Refused requests per hour") if by_hour else phrase("Refused requests per day")
    return (
        Chart(
            name=f"{name}-sign-ins",
            title=sign_ins,
            step=step,
            colour="good",
            values=[(at, each.sign_ins) for at, each in zip(beginnings, points, strict=True)],
        ),
        Chart(
            name=f"{name}-refusals",
            title=refusals,
            step=step,
            colour="bad",
            values=[(at, each.refusals) for at, each in zip(beginnings, points, strict=True)],
        ),
    )


def draw_chart(chart: Chart, voice: Translator) -> Drawing:
    """Draw a chart in the language of a page."""
    values = [value for _, value in chart.values]
    most, places = max(values, default=0), max(len(values), _FEWEST)
    top = _top(most)
    scale = (top, top // 2, 0) if top > 1 else (top, 0)
    parts = next((each for each in _TICKS if places % each == 0), 1)
    begins = range(0, places, places // parts)
    summary = phrase("Total: {total}. Highest: {most}.", total=sum(values), most=most) if most else phrase("None.")
    return Drawing(
        title=chart.title,
        summary=summary,
        column=phrase("Hour from") if chart.step == "hour" else phrase("Day"),
        svg=_svg(chart, voice, summary, top=top, lines=len(scale) - 1, begins=begins, places=places)
        if most
        else Markup(),
        colour=chart.colour,
        scale=[voice.number(number) for number in scale],
        ticks=[_tick(chart.values[at][0], chart.step, voice) if at < len(values) else "" for at in begins],
        rows=[(_row(at, chart.step, voice), voice.number(value)) for at, value in chart.values],
    )


def _top(most: int) -> int:
    """The next number that is round, and so is its half."""
    unit = int(f"1{'0' * (len(str(most)) - 1)}") if most else 1
    return next(each * unit for each in _SCALES if each * unit >= most)


def _svg(
    chart: Chart, voice: Translator, summary: Phrase, *, top: int, lines: int, begins: range, places: int
) -> Markup:
    """An image with a name and a description (WCAG 1.1.1)."""
    from xml.etree import ElementTree as ET  # noqa: PLC0415 - few pages have a chart

    named, described = f"{chart.name}-title", f"{chart.name}-summary"
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
    ET.SubElement(root, "title", {"id": named}).text = voice.say(chart.title)
    ET.SubElement(root, "desc", {"id": described}).text = voice.say(summary)
    levels = (f"M0 {_HEIGHT * each // lines}H{places}" for each in range(lines + 1))
    starts = (f"M{at} 0V{_HEIGHT}" for at in begins)
    ET.SubElement(
        root, "path", {"class": "chart-lines", "d": "".join((*levels, *starts)), "vector-effect": "non-scaling-stroke"}
    )
    ET.SubElement(root, "path", {"class": f"chart-bars chart-{chart.colour}", "d": "".join(_bars(chart, top))})
    return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704 - escaped by the library


def _bars(chart: Chart, top: int) -> Iterator[str]:
    for at, (_, value) in enumerate(chart.values):
        if value:
            yield f"M{at} {_HEIGHT}V{_HEIGHT - _HEIGHT * value / top:.4g}h{_BAR}V{_HEIGHT}Z"


def _tick(at: datetime, step: Step, voice: Translator) -> str:
    formats = voice.language.formats
    day = _unbroken(format_skeleton("MMMd", at, locale=formats))
    return day if step == "day" else f"{day} {_unbroken(format_time(at, 'short', locale=formats))}"


def _unbroken(text: object) -> str:
    """A text that no line ends inside of."""
    return str(text).replace(" ", "\N{NO-BREAK SPACE}")


def _row(at: datetime, step: Step, voice: Translator) -> str:
    return voice.day(at) if step == "day" else voice.moment(at)
