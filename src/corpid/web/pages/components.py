"""Components: what pages are made of (docs/architecture.md, "One page").

A page declares its parts; each part names its template below `templates/components`. What a part shows is a value: a
text, a phrase, a day, an instant, a number, a link, a label, or several of them.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeAlias

from markupsafe import Markup, escape

from corpid.rules.directory.values import NO_END
from corpid.texts import Phrase, phrase
from corpid.web.pages.layout import Component, Field, FormView, Link, NavigationLink, Pager, ViewPart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from corpid.web.pages.snippets import Snippet

Tone: TypeAlias = Literal["", "good", "warning", "error"]


class Label(ViewPart, frozen=True):
    """A state in a word; its tone colours it."""

    text: Phrase | str
    tone: Tone = ""


class Code(ViewPart, frozen=True):
    """An identifier, an address or a name of the interface."""

    text: str


class ForeignText(ViewPart, frozen=True):
    """A text in another language, such as that language's name."""

    text: str
    language: str
    direction: str


class English(ViewPart, frozen=True):
    """A text that exists in English only.

    Parts between backticks are code.
    """

    text: str


class Cell(ViewPart, frozen=True, kw_only=True):
    """Values beside each other, and notes below them."""

    values: tuple[Value, ...]
    notes: tuple[Value, ...] = ()


class Details(ViewPart, frozen=True, kw_only=True):
    """Names and values that open in place."""

    about: str
    """what they concern, for those who hear the text only"""
    facts: tuple[tuple[Phrase | str, Value], ...]
    items: tuple[Value, ...] = ()
    """values below each other, in place of facts"""


class LinkedName(str):
    """A name that is a link, also within a sentence."""

    __slots__ = ("url",)
    url: str

    def __new__(cls, name: str, url: str) -> Self:
        made = super().__new__(cls, name)
        made.url = url
        return made


class BoldName(str):
    """A name that stands out in its sentence."""

    __slots__ = ()


SELECT: Final = "select-"
"""begins the names of the checkboxes that select a row"""
LEAVE_OUT: Final = "except-"
"""begins the names of fields with the rows that a selection of the whole list leaves out"""


class Choice(ViewPart, frozen=True, kw_only=True):
    """The checkbox that selects a row."""

    value: str
    name: Phrase | str
    """of the row"""
    chosen: bool = False


Value: TypeAlias = "Phrase | str | int | date | Link | Label | Code | ForeignText | English | Cell | Details | None"
"""what a cell or a fact shows; an instant is a datetime in the time zone of the deployment"""

Part: TypeAlias = "Component | Value"
"""of a page: a value alone is a paragraph, and None is nothing"""

_SHOW: Final = phrase("Show")
_BREAKS: Final = re.compile(r"(?<=@)|(?<=\.)(?=\S)")
"""where the line of an address or of a long identifier may break"""
_WHOLE: Final = 24
"""characters of a part of an address that stays in one piece, however narrow its column is"""
_MARK: Final = "\0"
"""stands in no name that is stored"""
ACTIVE: Final = Label(phrase("Active"))
DISABLED: Final = Label(phrase("Disabled"), "error")
INVITED: Final = Label(phrase("Invited"), "warning")
PROBLEM: Final = Label(phrase("Problem"), "error")
WARNING: Final = Label(phrase("Warning"), "warning")


def enabled_label(enabled: bool) -> Label:
    """The state of a record that can be disabled."""
    return ACTIVE if enabled else DISABLED


def last_day(stored: str) -> Value:
    """The last day of a role, from the value stored."""
    return phrase("No end") if stored == NO_END else date.fromisoformat(stored)


class Paragraph(Component, frozen=True):
    template: ClassVar[str] = "components/paragraph.html"

    text: Value
    look: Literal["", "hint", "empty", "summary", "warning"] = ""


class Heading(Component, frozen=True):
    """The heading of what follows."""

    template: ClassVar[str] = "components/heading.html"

    text: Phrase


class Actions(Component, frozen=True):
    """Buttons that lead to the pages of what can be done."""

    template: ClassVar[str] = "components/actions.html"

    links: tuple[Link, ...]
    danger: Link | None = None
    """takes something away"""
    main: bool = False
    """whether the first link is the main action of the page"""


class Facts(Component, frozen=True):
    """Names and values of one record."""

    template: ClassVar[str] = "components/facts.html"

    facts: tuple[tuple[Phrase, Value], ...]
    copies: bool = False
    """whether a button copies each that is code"""
    line: bool = False
    """whether they are few and short, and stand in one line of a wide screen"""


class Alert(ViewPart, frozen=True, kw_only=True):
    """Something that needs somebody, and the page where it is settled."""

    label: Label
    text: Value
    link: Link | None = None


class Alerts(Component, frozen=True, kw_only=True):
    """Matters for attention, the most urgent first."""

    template: ClassVar[str] = "components/alerts.html"

    alerts: tuple[Alert, ...]


class Tile(ViewPart, frozen=True, kw_only=True):
    """A number that is watched."""

    label: Phrase
    value: Value
    note: Value = None
    """such as the number before"""
    tone: Literal["", "error"] = ""
    url: str = ""
    """of the page with more about it"""


class Tiles(Component, frozen=True, kw_only=True):
    """Numbers beside each other."""

    template: ClassVar[str] = "components/tiles.html"

    tiles: tuple[Tile, ...]


class Tabs(Component, frozen=True, kw_only=True):
    """Links to views of the same thing, one of which is shown."""

    template: ClassVar[str] = "components/tabs.html"

    label: Phrase
    """what the views differ in, for those who cannot see them"""
    links: tuple[NavigationLink, ...]


class Series(ViewPart, frozen=True, kw_only=True):
    """A number for each hour or day of its chart."""

    title: Phrase
    values: Sequence[int]
    colour: Literal["good", "bad"]


class Chart(Component, frozen=True, kw_only=True):
    """Series over the same time, each with a scale of its own.

    They are drawn by `charts.draw_chart`.
    """

    template: ClassVar[str] = "components/chart.html"

    name: str
    """unique on the page, for identifiers"""
    title: Phrase
    by_hour: bool
    """or by day"""
    beginnings: Sequence[datetime]
    """of each hour or day, in the time zone to be shown"""
    series: tuple[Series, ...]
    ranges: Tabs | None = None
    """the same chart for other periods"""


class Snippets(Component, frozen=True, kw_only=True):
    """Texts to copy, one of which is open."""

    template: ClassVar[str] = "components/snippets.html"

    snippets: tuple[Snippet, ...]


class Items(Component, frozen=True):
    """Sentences below each other."""

    template: ClassVar[str] = "components/items.html"

    items: tuple[Value, ...]
    language: str = ""
    """that of texts; empty: the page's"""


class TimelineEntry(ViewPart, frozen=True, kw_only=True):
    """Something that happened."""

    text: Value
    """a sentence, or a link to it"""
    by: Value
    at: datetime


class Timeline(Component, frozen=True):
    """Sentences with who and when, in the caller's order."""

    template: ClassVar[str] = "components/timeline.html"

    entries: tuple[TimelineEntry, ...]


class Entry(ViewPart, frozen=True, kw_only=True):
    """An entry of a list: title, notes and actions."""

    title: Value
    notes: tuple[Value, ...] = ()
    """None among them is left out"""
    parts: tuple[Part, ...] = ()


class Subsection(Component, frozen=True, kw_only=True):
    """Parts below a heading of the second rank."""

    template: ClassVar[str] = "components/subsection.html"

    heading: Phrase | str
    state: Label | None = None
    folded: bool = False
    """whether it is opened on demand"""
    note: Phrase | None = None
    """beside the heading while it is folded"""
    parts: tuple[Part, ...]


class EntryList(Component, frozen=True):
    """A list whose entries have a title, notes and actions."""

    template: ClassVar[str] = "components/entry_list.html"

    entries: tuple[Entry, ...]


class QuietButtons(Component, frozen=True, kw_only=True):
    """Buttons that look like links, in a form of their own."""

    template: ClassVar[str] = "components/quiet_buttons.html"

    buttons: tuple[tuple[str, Phrase], ...]
    """what each sends as `decision`, empty for nothing, and its text"""
    hidden: tuple[tuple[str, str], ...] = ()
    about: Phrase | str = ""
    """as in Link"""
    action: str = ""
    """as in Form"""


class Progress(Component, frozen=True, kw_only=True):
    """Work that goes on: its page loads again by itself."""

    template: ClassVar[str] = "components/progress.html"

    text: Phrase
    """how far it is"""
    done: int
    total: int
    """0: not known"""
    page: str
    """the address of the page"""


class Group(Component, frozen=True, kw_only=True):
    """Parts that belong together."""

    template: ClassVar[str] = "components/group.html"

    parts: tuple[Part, ...]
    look: Literal["stack screen", "stack", "beside"] = "stack screen"
    """`stack screen` is not printed; the two parts of `beside` stand beside each other on a wide screen"""


class Disclosure(Component, frozen=True, kw_only=True):
    """Parts that are opened on demand."""

    template: ClassVar[str] = "components/disclosure.html"

    summary: Phrase
    about: Phrase | str = ""
    """as in Link"""
    opened: bool = False
    look: Literal["more", "help", "settings"] = "more"
    """`settings` has space for groups of fields; `help` is for those who cannot go on"""
    parts: tuple[Part, ...]


class LinkList(Component, frozen=True, kw_only=True):
    """Links below each other, each with what is said of it."""

    template: ClassVar[str] = "components/link_list.html"

    links: tuple[tuple[Link, Value], ...]


class Links(Component, frozen=True):
    """A plain list of links."""

    template: ClassVar[str] = "components/links.html"

    links: tuple[Link, ...]


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
    narrow: Literal["", "end", "hidden"] = ""
    """on a narrow screen, where a row has its first cell and the others in a line below: `end` stands beside the first,
    `hidden` is left to the page of the record"""


class Filters(Component, frozen=True, kw_only=True):
    """The fields that narrow a list; they stand in the address."""

    template: ClassVar[str] = "components/filters.html"

    action: str
    fields: tuple[Field, ...]
    kept: tuple[tuple[str, str], ...] = ()
    """hidden fields"""

    @property
    def used(self) -> int:
        """The number of folded fields that narrow the list."""
        return sum(1 for each in self.fields[1:] if each.value)


class Selection(ViewPart, frozen=True, kw_only=True):
    """The form that acts on selected rows.

    The form sends SELECT and its value for each chosen row, or `all` with what is kept of the list, and LEAVE_OUT and
    the value of each row that is not ticked then, if a script runs; and the button's `decision`.
    """

    action: str
    buttons: tuple[tuple[str, Phrase], ...]
    """values of `decision` and their texts"""
    everything: Phrase | None = None
    """the text of the checkbox that selects the whole list, as it is filtered (D81); None: there is none"""
    total: int = 0
    """the rows that this selects; 0: those of the page"""
    note: Phrase | None = None
    """why there is no such checkbox"""
    all_chosen: bool = False
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


def is_chosen(form: Mapping[str, str], value: str) -> bool:
    """Return whether the form of a selection has this row."""
    return f"{LEAVE_OUT}{value}" not in form if "all" in form else f"{SELECT}{value}" in form


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


class Radios(Component, frozen=True, kw_only=True):
    """A choice of one, perhaps with a field for a day.

    The field is shown while `date` is chosen.
    """

    template: ClassVar[str] = "components/radios.html"

    name: str
    legend: Phrase
    options: tuple[tuple[str, Value, Phrase | str | None], ...]
    """values, texts and hints"""
    value: str = ""
    hint: Phrase | None = None
    day: Field | None = None


class RoleGroup(ViewPart, frozen=True, kw_only=True):
    """The roles of a service, and the fields of what it needs."""

    name: str
    options: tuple[tuple[str, Phrase | str, str], ...]
    """values, texts and hints"""
    fields: tuple[Field, ...] = ()
    """shown while one of its roles is chosen"""


class RoleChoice(Component, frozen=True, kw_only=True):
    """A choice of one role among those of several services."""

    template: ClassVar[str] = "components/role_choice.html"

    name: str
    legend: Phrase
    groups: tuple[RoleGroup, ...]
    asked: tuple[str, str]
    """a hidden field that says what the form asks for"""
    none: Phrase | None = None
    """the choice of no role, the first"""
    value: str = ""
    folded: bool = False
    """whether each service is opened to see its roles"""


class Checkboxes(Component, frozen=True, kw_only=True):
    """A choice of several."""

    template: ClassVar[str] = "components/checkboxes.html"

    legend: Phrase
    options: tuple[tuple[str, Phrase | str, bool, Phrase | str | None], ...]
    """name, text, whether it is ticked, hint; the name of the first is the id of their errors"""
    hint: Phrase | None = None


class Form(Component, frozen=True, kw_only=True):
    """A form of a page.

    It is sent to the page; its reason and its way back are those of the page.
    """

    template: ClassVar[str] = "components/form.html"

    parts: tuple[Part, ...] = ()
    hidden: tuple[tuple[str, str], ...] = ()
    button: Phrase
    """its text, unless it needs approval"""
    danger: bool = False
    """whether it takes something away"""
    secondary: bool = False
    """whether another form of the page comes first"""
    decision: str = ""
    """what the button sends as `decision`"""
    other: tuple[str, Phrase] | None = None
    """a second button: its `decision`, and its text"""
    more: tuple[tuple[str, Phrase], ...] = ()
    """quiet buttons, as `other`"""
    reason: Phrase | None = None
    """the hint of the field for a reason; None: it asks for none, unless it needs approval"""
    needs_approval: bool = False
    """whether it asks for a reason for the person who approves it"""
    action: str = ""
    """of another page"""
    get: bool = False
    """whether it only asks: its fields stand in the address"""
    upload: bool = False
    """whether it may have a file, and what is long"""
    back: Link | None = None
    """in place of the page's way back"""


class PasskeyForm(Component, frozen=True, kw_only=True):
    """A form that makes or shows a passkey.

    A script shows it where the browser knows passkeys. Field: passkey. Error id: passkey.
    """

    template: ClassVar[str] = "components/passkey_form.html"

    action: str
    options: str
    """JSON for `navigator.credentials`"""
    kind: Literal["create", "get"]
    label: Phrase
    """of its button"""
    text: Phrase | None = None
    other: Literal["", "after"] = ""
    """whether another way follows"""
    cancelled: Phrase | str = ""
    known: Phrase | str = ""
    failed: Phrase | str = ""
    """what the script says if the person cancels, has a passkey already, or cannot use one; empty: that another way
    remains"""


class AppKey(Component, frozen=True, kw_only=True):
    """The key of an authenticator app, to be scanned, opened or typed."""

    template: ClassVar[str] = "components/app_key.html"

    picture: str
    """address of the QR code"""
    link: str
    """opens an app on the same device (otpauth)"""
    secret: str
    """in groups, to be typed"""


class RecoveryCodes(Component, frozen=True, kw_only=True):
    """Recovery codes, and buttons that save them."""

    template: ClassVar[str] = "components/recovery_codes.html"

    codes: tuple[str, ...]


class Page(FormView, frozen=True, kw_only=True):
    """A page made of components."""

    template: ClassVar[str] = "page.html"

    heading: Phrase
    name: str = ""
    """of what the page is about, shown in place of the heading"""
    main_action: Link | None = None
    """beside the heading"""
    parts: tuple[Part, ...]

    @property
    def refresh_seconds(self) -> int:
        """Seconds until it loads again without a script; 0: never."""
        return 5 if any(isinstance(each, Progress) for each in self.parts) else 0

    @property
    def copies(self) -> bool:
        """Return whether it has anything that a button copies."""
        return any(isinstance(each, Snippets) or (isinstance(each, Facts) and each.copies) for each in self.parts)


_CONSTANTS: Final = 4096
"""phrases without values whose markup is cached, per language"""
_WITH_MARKUP: Final = frozenset({BoldName, LinkedName, datetime, Phrase})
"""types of values that may need markup within a sentence"""


def sentence_renderer(
    say: Callable[[Phrase, Callable[[object], object] | None], str], moment: Callable[[datetime], Markup]
) -> Callable[[Any], Any]:
    """A function that shows a phrase in one language, as Markup.

    Names that are links, and instants by `moment`, stay so within it; what is no phrase stays as it is.
    """
    constant = lru_cache(_CONSTANTS)(lambda text: escape(say(text, None)))

    def said(text: Any) -> Any:  # noqa: ANN401
        if type(text) is not Phrase:
            return text
        if not text.values:
            return constant(text)
        if _WITH_MARKUP.isdisjoint(map(type, text.values.values())):
            return escape(say(text, None))
        inserted: list[Markup] = []

        def prepared(value: object) -> object:
            if isinstance(value, LinkedName):
                inserted.append(_show_name(value))
            elif isinstance(value, BoldName):
                inserted.append(Markup("<strong><bdi>{}</bdi></strong>").format(value))
            elif isinstance(value, datetime):
                inserted.append(moment(value))
            else:
                return value.replace(_MARK, "") if isinstance(value, str) and _MARK in value else value
            return f"{_MARK}{len(inserted) - 1}{_MARK}"

        # Between two marks stands the number of what is inserted: other values lose the mark first.
        parts = say(text, prepared).split(_MARK)
        return Markup().join(inserted[int(each)] if at % 2 else escape(each) for at, each in enumerate(parts))

    return said


def value_renderer(
    say: Callable[[Phrase], Markup], written: Mapping[type, Callable[..., str]]
) -> Callable[[Value], Markup]:
    """A filter that shows a value in one language.

    `written` gives the markup of days, instants and numbers, by their type.
    """

    def shown(value: Value) -> Markup:
        if value is None or value == "":
            return Markup("–")  # noqa: RUF001 - a dash
        return escape(by_type.get(type(value), _show_text)(value))

    def show_label(label: Label) -> Markup:
        tone = f" tag-{label.tone}" if label.tone else ""
        return Markup('<span class="tag{}">{}</span>').format(tone, shown(label.text))

    def show_link(link: Link) -> Markup:
        about = say(link.about) if isinstance(link.about, Phrase) else link.about
        return Markup('<a href="{}">{}{}</a>').format(link.url, shown(link.text), about and _show_about(about))

    def show_cell(cell: Cell) -> Markup:
        notes = (Markup('<span class="hint">{}</span>').format(shown(each)) for each in cell.notes)
        return Markup(" ").join((*map(shown, cell.values), *notes))

    by_type: dict[type, Callable[..., str]] = {
        **written,
        Phrase: say,
        Markup: escape,
        LinkedName: _show_name,
        Label: show_label,
        Link: show_link,
        Code: _show_code,
        ForeignText: _show_foreign,
        English: _show_english,
        Cell: show_cell,
        Details: lambda details: _show_details(details, shown),
    }
    return shown


def _show_text(text: str) -> Markup:
    if "@" not in text:
        return Markup("<bdi>{}</bdi>").format(text)
    parts = _BREAKS.split(text)
    whole = Markup(' class="address"') if max(map(len, parts)) <= _WHOLE else ""
    return Markup("<bdi{}>{}</bdi>").format(whole, Markup("<wbr>").join(parts))


def _show_code(code: Code) -> Markup:
    parts = _BREAKS.split(code.text) if len(code.text) > _WHOLE else [code.text]
    return Markup("<code>{}</code>").format(Markup("<wbr>").join(parts))


def _show_foreign(foreign: ForeignText) -> Markup:
    return Markup('<span lang="{}" dir="{}">{}</span>').format(foreign.language, foreign.direction, foreign.text)


def _show_english(english: English) -> Markup:
    pieces = (_show_code(Code(each)) if at % 2 else escape(each) for at, each in enumerate(english.text.split("`")))
    return _show_foreign(ForeignText(Markup().join(pieces), "en", "ltr"))


def _show_name(name: LinkedName) -> Markup:
    return Markup('<a href="{}"><bdi>{}</bdi></a>').format(name.url, name[:])


def _show_about(about: str) -> Markup:
    return Markup(' <span class="visually-hidden">{}</span>').format(about) if about else Markup()


def _show_details(value: Details, shown: Callable[[Value], Markup]) -> Markup:
    facts = (
        Markup("<div><dt>{}</dt> <dd>{}</dd></div>").format(shown(name), shown(each)) for name, each in value.facts
    )
    items = (Markup("<li>{}</li>").format(shown(each)) for each in value.items)
    listed = Markup('<dl class="facts">{}</dl>').format(Markup().join(facts))
    if value.items:
        listed = Markup("<ul>{}</ul>").format(Markup().join(items))
    return Markup('<details class="more"><summary>{}{}</summary>{}</details>').format(
        shown(_SHOW), _show_about(value.about), listed
    )
