"""Components: what pages are made of (docs/architecture.md, "One page").

A page declares its parts; each part names its template below `templates/components`. What a part shows is a value: a
text, a phrase, a day, an instant, a number, a link, a label, or several of them.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

from markupsafe import Markup, escape

from corpid.rules.directory.values import NO_END
from corpid.texts import Phrase, phrase
from corpid.web.pages.layout import Field, FormView, Link, Pager, ViewPart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Tone: TypeAlias = Literal["", "warning", "error"]


class Label(ViewPart, frozen=True):
    """A state in a word; its tone colours it."""

    text: Phrase | str
    tone: Tone = ""


class Cell(ViewPart, frozen=True, kw_only=True):
    """Values beside each other, and notes below them."""

    values: tuple[Value, ...]
    notes: tuple[Value, ...] = ()


class Choice(ViewPart, frozen=True, kw_only=True):
    """The checkbox `select-VALUE` that selects a row."""

    value: str
    name: Phrase | str
    """of the row"""
    chosen: bool = False


Value: TypeAlias = "Phrase | str | int | date | Link | Label | Cell | None"
"""what a cell or a fact shows; an instant is a datetime in the time zone of the deployment"""

ACTIVE: Final = Label(phrase("Active"))
DISABLED: Final = Label(phrase("Disabled"), "error")
INVITED: Final = Label(phrase("Invited"), "warning")


def enabled_label(enabled: bool) -> Label:
    """The state of a record that can be disabled."""
    return ACTIVE if enabled else DISABLED


def last_day(stored: str) -> Value:
    """The last day of a role, from the value stored."""
    return phrase("No end") if stored == NO_END else date.fromisoformat(stored)


class Component(ViewPart, frozen=True, kw_only=True):
    """A part of a page, with the template that shows it."""

    template: ClassVar[str]


class Paragraph(Component, frozen=True, kw_only=True):
    template: ClassVar[str] = "components/paragraph.html"

    text: Value
    look: Literal["", "hint", "empty", "summary", "warning"] = ""


class Heading(Component, frozen=True, kw_only=True):
    """The heading of what follows."""

    template: ClassVar[str] = "components/heading.html"

    text: Phrase


class Actions(Component, frozen=True, kw_only=True):
    """Buttons that lead to the pages of what can be done."""

    template: ClassVar[str] = "components/actions.html"

    links: tuple[Link, ...]
    danger: Link | None = None
    """takes something away"""
    main: bool = False
    """whether the first link is the main action of the page"""


class Facts(Component, frozen=True, kw_only=True):
    """Names and values of one record."""

    template: ClassVar[str] = "components/facts.html"

    facts: tuple[tuple[Phrase, Value], ...]


class Items(Component, frozen=True, kw_only=True):
    """Sentences below each other."""

    template: ClassVar[str] = "components/items.html"

    items: tuple[Phrase | str, ...]
    language: str = ""
    """that of texts; empty: the page's"""


class Group(Component, frozen=True, kw_only=True):
    """Parts that belong together."""

    template: ClassVar[str] = "components/group.html"

    parts: tuple[Component | None, ...]
    look: Literal["stack screen", "stack", "beside"] = "stack screen"
    """`stack screen` is not printed; the two parts of `beside` stand beside each other on a wide screen"""


class Disclosure(Component, frozen=True, kw_only=True):
    """Parts that are opened on demand."""

    template: ClassVar[str] = "components/disclosure.html"

    summary: Phrase
    parts: tuple[Component | None, ...]


class LetterHead(Component, frozen=True, kw_only=True):
    """The head of a printed page: organisation and day."""

    template: ClassVar[str] = "components/letter_head.html"

    name: str
    number: Phrase
    as_of: Phrase


class Column(ViewPart, frozen=True):
    """A column of a table, and the address that sorts by it."""

    heading: Phrase
    sort: str = ""
    """empty: the list is not sorted by it"""
    direction: Literal["", "ascending", "descending"] = ""
    """of the list, if this column sorts it"""


class Filters(ViewPart, frozen=True, kw_only=True):
    """The fields that narrow a list; they stand in the address."""

    action: str
    fields: tuple[Field, ...]

    @property
    def used(self) -> int:
        """The number of fields that narrow the list."""
        return sum(1 for each in self.fields if each.value)


class Selection(ViewPart, frozen=True, kw_only=True):
    """The form that acts on selected rows.

    The form sends `select-VALUE` for each chosen row, or `all` with what is kept of the list, and the button's
    `decision`.
    """

    action: str
    buttons: tuple[tuple[str, Phrase], ...]
    """values of `decision` and their texts"""
    everything: Phrase | None = None
    """the text of the checkbox that selects the whole list, as it is filtered (D81); None: there is only this page"""
    kept: tuple[tuple[str, str], ...] = ()
    """hidden fields, such as the filters"""


class Table(Component, frozen=True, kw_only=True):
    """A list with its filters, further pages and selection.

    Without rows it shows `empty` with the next step. On a narrow screen each row becomes a card.
    """

    template: ClassVar[str] = "components/table.html"

    caption: Phrase
    heading: bool = False
    """whether the caption is a heading of the page"""
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value | Choice, ...], ...]
    """with a selection, the first cell of each is a Choice, or None if the row cannot be chosen"""
    empty: Phrase | Cell | None = None
    filters: Filters | None = None
    pager: Pager | None = None
    selection: Selection | None = None
    csv: str = ""
    """the address of the same list as CSV; empty: none"""
    more: Phrase | None = None
    """below the rows, if they are not all"""


def table(
    caption: Phrase,
    headings: tuple[Phrase, ...],
    rows: Iterable[tuple[Value, ...]],
    *,
    heading: bool = False,
    empty: Phrase | Cell | None = None,
    more: Phrase | None = None,
) -> Table:
    """A table that is neither filtered nor sorted."""
    return Table(
        caption=caption,
        heading=heading,
        columns=tuple(map(Column, headings)),
        rows=tuple(rows),
        empty=empty,
        more=more,
    )


class Fields(Component, frozen=True, kw_only=True):
    """Fields of a form, as a record or a page declares them."""

    template: ClassVar[str] = "components/fields.html"

    fields: tuple[Field, ...]


class Radios(Component, frozen=True, kw_only=True):
    """A choice of one."""

    template: ClassVar[str] = "components/radios.html"

    name: str
    legend: Phrase
    options: tuple[tuple[str, Phrase | str, Phrase | str | None], ...]
    """values, texts and hints"""
    value: str = ""
    hint: Phrase | None = None


class Form(Component, frozen=True, kw_only=True):
    """A form of a page.

    It is sent to the page; its reason and its way back are those of the page.
    """

    template: ClassVar[str] = "components/form.html"

    parts: tuple[Component | None, ...] = ()
    hidden: tuple[tuple[str, str], ...] = ()
    button: Phrase
    danger: bool = False
    """whether it takes something away"""
    reason: Phrase | None = None
    """the hint of the field for a reason; None: it asks for none, unless it needs approval"""
    needs_approval: bool = False
    """whether it asks for a reason for the person who approves it"""
    action: str = ""
    """of another page"""
    again: Phrase | None = None
    """a second button, which sends the form to be checked again; the first one then sends `confirmed`"""


class Page(FormView, frozen=True, kw_only=True):
    """A page made of components."""

    template: ClassVar[str] = "page.html"

    heading: Phrase
    name: str = ""
    """of what the page is about, shown in place of the heading"""
    main_action: Link | None = None
    """beside the heading"""
    parts: tuple[Component | None, ...]
    """None: nothing"""


def value_renderer(
    say: Callable[[Phrase], str], written: Mapping[type, Callable[..., str]]
) -> Callable[[Value], Markup]:
    """A filter that shows a value in one language.

    `written` gives the markup of days, instants and numbers, by their type.
    """

    def shown(value: Value) -> Markup:
        match value:
            case None | "":
                return Markup("–")  # noqa: RUF001 - a dash
            case Phrase():
                return escape(say(value))
            case str():
                return Markup("<bdi>{}</bdi>").format(value)
            case Label():
                tone = f" tag-{value.tone}" if value.tone else ""
                return Markup('<span class="tag{}">{}</span>').format(tone, shown(value.text))
            case Link():
                about = Markup(' <span class="visually-hidden">{}</span>').format(value.about) if value.about else ""
                return Markup('<a href="{}">{}{}</a>').format(value.url, shown(value.text), about)
            case Cell():
                notes = (Markup('<span class="hint">{}</span>').format(shown(each)) for each in value.notes)
                return Markup(" ").join((*map(shown, value.values), *notes))
            case _:
                return escape(written[type(value)](value))

    return shown
