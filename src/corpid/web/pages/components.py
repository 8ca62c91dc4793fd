"""Components: what pages are made of (docs/architecture.md, "One page"), and their frame.

A page declares its parts; each part names its template below `templates/components`. What a part shows is a value: a
text, a phrase, a day, an instant, a number, a link, a label, or several of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, tzinfo
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, Self, TypeAlias, cast
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec.structs import replace

from corpid.rules.directory.values import NO_END
from corpid.texts import Phrase, counted, phrase

if TYPE_CHECKING:
    from corpid.flows.directory.lists import ListPage
    from corpid.rules.directory.lists import ListTotal
    from corpid.rules.directory.memberships import MemberState
    from corpid.rules.oauth.records import Client

ROW: Final = "row"
"""the parameter of the number of a page's first row"""
_DIGITS: Final = 9


class ViewPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of what a page shows."""


class Component(ViewPart, frozen=True, kw_only=True):
    """A part of a page, with the template that shows it."""

    template: ClassVar[str]


class ButtonForm(msgspec.Struct, frozen=True, kw_only=True):
    """The target of a form of one button.

    Fields: form_token, step, those of `fields`.
    """

    action: str
    fields: tuple[tuple[str, str], ...] = ()


class Link(ViewPart, frozen=True, kw_only=True):
    """A link: an address and its text."""

    url: str
    text: Phrase | str
    about: Phrase | str = ""
    """whom or what it concerns, for those who hear the text only"""


class Advice(ViewPart, frozen=True, kw_only=True):
    """A sentence on what to do, and where."""

    text: Phrase
    link: Link | None = None


_WARN_SECONDS: Final = 180


def _left(minutes: int) -> Phrase:
    """Say that fewer than so many minutes are left."""
    if minutes == 1:
        return phrase("Less than a minute left on this page.")
    return counted(minutes, "About {count} minute left on this page.", "About {count} minutes left on this page.")


class TimeLimit(msgspec.Struct, frozen=True, kw_only=True):
    """The time limit of a page, and its extension (D15, WCAG 2.2.1)."""

    at: datetime
    """in the time zone of the deployment"""
    seconds: int
    """the same from now, for the script that warns"""
    extend: ButtonForm | None = None
    """gives more time; None when none is left"""
    last_time: Phrase | None = None
    """the note if there is no more time after that"""
    of_session: bool = False
    """whether it is when the person is signed out, of a page on which nothing has to be finished"""
    warn_seconds: ClassVar[int] = _WARN_SECONDS
    """how long before its end a page says that it closes; its script reads the same from the page"""
    left: ClassVar[tuple[Phrase, ...]] = tuple(_left(minutes) for minutes in range(1, _WARN_SECONDS // 60 + 1))
    """the time that is left, in the last minute, the one before, and so on"""

    @property
    def near(self) -> bool:
        """True in the last minutes."""
        return self.seconds <= self.warn_seconds


def time_limit(
    at: float, *, now: float, zone: tzinfo, more: ButtonForm | None, at_end: Phrase, of_session: bool = False
) -> TimeLimit:
    """The limit of a page that ends at `at`, in epoch seconds.

    `at_end` is shown without `more` (D15).
    """
    return TimeLimit(
        at=datetime.fromtimestamp(at, zone),
        seconds=max(0, int(at - now)),
        extend=more,
        last_time=None if more else at_end,
        of_session=of_session,
    )


class NavigationLink(ViewPart, frozen=True, kw_only=True):
    """A link to a section, `current` if the page is in it."""

    url: str
    text: Phrase
    current: bool = False
    count: int = 0
    """what waits there for the reader; 0 shows nothing"""


class Navigation(ViewPart, frozen=True, kw_only=True):
    """The sections of a site with many pages, which are wide."""

    label: Phrase
    """names the list of sections, for those who cannot see it"""
    title: str
    """whose pages these are"""
    person: str
    """who is signed in"""
    links: tuple[NavigationLink, ...]
    switch: Link | None = None
    """leads to the same pages of another"""
    search: Link | None = None
    """the target and the label of a field that searches everything"""
    searched: str = ""
    """what was searched"""
    posted: bool = False
    """whether the search is sent by POST, since its text must not stand in an address"""


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """The frame of a page: client, provider, time limit, cancel link.

    Source: D12, D15, D17
    """

    client_name: str | None = None
    message: str | None = None
    """authentication_context_message (D12)"""
    user_name: str | None = None
    """once the person is known"""
    entity: str | None = None
    """once it is chosen"""
    step: tuple[int, int] | None = None
    """this step and how many there are, e.g. (2, 3); None while their number is not known"""
    step_name: str = ""
    """value of the hidden field `step`: the step that the page belongs to"""
    form_token: str = ""
    """value of the hidden field `form_token` (D35)"""
    names: str = ""
    """value of the hidden field `names`: a digest of the people whom the page shows; empty: it has none (D68)"""
    entered: str = ""
    """value of the hidden field `entered`: the stored form that the page shows (D73); empty: it has none"""
    cancel: ButtonForm | None = None
    """answers access_denied to the RP (D17)"""
    limit: TimeLimit | None = None
    under_way: bool = False
    """whether something is unfinished here: then the page leads nowhere else"""
    reason: Phrase | None = None
    """why the person has to sign in, if that is not obvious"""
    up: Link | None = None
    """leads to the page above"""
    navigation: Navigation | None = None
    """of a site with many pages"""
    no_approver: Advice | None = None
    """what to do about a change that needs approval, if nobody else could approve it"""
    ui_locales: tuple[str, ...] = ()
    """the languages that the RP asks for, the best first (OpenID Connect Core §3.1.2.1)"""
    account_language: str = ""
    """the tag of the language of the person's account, which the page may offer; before the first factor that of
    the browser's last one; empty: none is known"""
    sign_in: str = ""
    """the identifier of the sign-in, as it occurs in this page's paths; empty: none"""
    here: str = ""
    """the address path of this page, to return to after another language is picked; empty: the browser says"""


_AS_IT_IS: Final = {"autocapitalize": "none", "spellcheck": "false"}
_CODE: Final = {"autocomplete": "one-time-code", **_AS_IT_IS, "dir": "ltr"}
INPUTS: Final[Mapping[str, Mapping[str, str]]] = {
    "date": {"type": "date", "placeholder": "2026-11-30"},
    "search": {"type": "search", "autocomplete": "off", "spellcheck": "false", "dir": "auto"},
    "file": {"type": "file", "accept": ".csv,.tsv,.txt,text/csv"},
    "email": {"type": "email", "autocomplete": "off", "spellcheck": "false"},
    "own email": {"type": "email", "autocomplete": "email", **_AS_IT_IS, "dir": "ltr"},
    "name": {"autocomplete": "name", "dir": "auto"},
    "user name": {"autocomplete": "username", **_AS_IT_IS, "dir": "auto"},
    "own user name": {"autocomplete": "username", "readonly": "readonly", "dir": "auto"},
    "password": {"type": "password", "autocomplete": "current-password"},
    "new password": {"type": "password", "autocomplete": "new-password"},
    "any code": {**_CODE, "class": "input-key"},
    "code": {"inputmode": "numeric", **_CODE, "class": "input-code"},
}
"""attributes of single-line inputs, by kind of field"""


class Field(Component, frozen=True, kw_only=True):
    """A field of a form: a declared member and its value."""

    template: ClassVar[str] = "components/field.html"

    name: str
    label: Phrase | str
    hint: Phrase | str | None = None
    kind: str = "text"
    """lines, flag, words, choices (several words, one a line), text, decimal, numeric, find, or one of INPUTS

    find: what its form finds is offered while one types.
    """
    value: str = ""
    words: tuple[tuple[str, Phrase | str | ViewPart], ...] = ()
    """the closed list of values, each with its text, or that of a checkbox with what a cell shows"""
    groups: tuple[tuple[Phrase, tuple[tuple[str, Phrase | str], ...]], ...] = ()
    """further words below headings"""
    optional: bool = False
    most: int = 0
    """characters; 0: no limit of its own"""
    notes: Component | None = None
    """what was found in its value, below it"""
    offered: tuple[str, ...] = ()
    """known values, which may be chosen in place of typing"""

    @property
    def attributes(self) -> Mapping[str, str] | None:
        """Those of its input, if its kind has some."""
        return INPUTS.get(self.kind)


class Pager(ViewPart, frozen=True, kw_only=True):
    """Addresses of other pages of a long list; empty for none."""

    first: str = ""
    previous: str = ""
    next: str = ""
    total: Phrase | None = None
    """which records these are, and how many all pages have"""
    searched_on: bool = False
    """whether the search stopped before this page was full, and goes on in the next"""


def pager_of(
    here: str,
    kept: Mapping[str, str],
    *,
    came: bool,
    after: object,
    name: str = "after",
    before: str = "",
    searched_on: bool = False,
) -> Pager:
    """The addresses of the other pages of a list.

    `kept` are its filters; `came` says that this is not the first page; `after` is the place at which the next one
    begins, and `name` its parameter; `before` is the place before which the previous one ends. Empty if there is none.
    """
    first = f"{here}?{urlencode(kept)}" if kept else here
    return Pager(
        first=first if came else "",
        previous=f"{here}?{urlencode({**kept, 'before': before})}" if before else "",
        next=f"{here}?{urlencode({**kept, name: after})}" if after else "",
        searched_on=bool(after) and searched_on,
    )


def read_number(text: str, *, digits: int = 18) -> int:
    """The number in an address; 0 for anything else.

    That includes a number of more `digits`.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else 0


def counted_pager(
    here: str,
    kept: Mapping[str, str],
    query: Mapping[str, str],
    page: ListPage[Any],
    *,
    most: int,
    searched_on: bool = False,
) -> Pager:
    """The other pages of a counted list, with its row numbers.

    `query` is that of the address, in which ROW has the first one's, and `most` the rows of a page. Source: D83
    """
    came, typed = bool(query.get("after") or page.before), query.get(ROW, "")
    first = read_number(typed, digits=_DIGITS) if came else 1
    last = first + len(page.found) - 1
    pager = pager_of(here, kept, came=came, after=page.after, before=page.before, searched_on=searched_on)
    if page.total is None or not page.found:
        return pager
    whole = not came and not page.after
    return replace(
        pager,
        total=_total(page.total) if whole or not first else _rows(first, last, page.total),
        previous=f"{pager.previous}&{ROW}={max(1, first - most)}" if pager.previous and first else pager.previous,
        next=f"{pager.next}&{ROW}={last + 1}" if pager.next and first else pager.next,
    )


def _total(total: ListTotal) -> Phrase:
    if not total.exact:
        return phrase("More than {count} in this list", count=total.count)
    return counted(total.count, "{count} in this list", "{count} in this list")


def count_found(kind: Phrase, total: ListTotal | None) -> Phrase:
    """The kind of some records that were found, with their number."""
    if total is None:
        return kind
    if not total.exact:
        return phrase("{kind}: more than {count}", kind=kind, count=total.count)
    return phrase("{kind}: {count}", kind=kind, count=total.count)


def _rows(first: int, last: int, total: ListTotal) -> Phrase:
    if not total.exact:
        return phrase("{first}–{last} of more than {count}", first=first, last=last, count=total.count)  # noqa: RUF001
    return phrase("{first}–{last} of {count}", first=first, last=last, count=total.count)  # noqa: RUF001


BARE: Final = Frame()
"""of a page that belongs to nothing"""

FieldError = tuple[str, "Phrase"]
"""Id of the field (its name; empty: the page as a whole) and what the person should change."""


class PageView(ViewPart, frozen=True, kw_only=True):
    """The members of every view, which own pages complete."""

    frame: Frame
    errors: tuple[FieldError, ...] = ()
    notes: tuple[Phrase, ...] = ()
    """what the person should know first, as after a new sign-in"""
    saved: Phrase | None = None
    """what was just changed"""
    undo: ButtonForm | None = None
    """undoes it; None if that is not possible (D80)"""


class FormView(PageView, frozen=True, kw_only=True):
    """A page with one main form."""

    action: str = ""
    """its target; empty: the page"""
    reason: str | None = ""
    """as typed, if the form asks for one"""
    back: str | Link | None = ""
    """leads away without a change; empty: where the frame leads up; None: nowhere"""


def never_asks(provider: str) -> Phrase:
    """The sentence against phishing at the foot of every page and e-mail."""
    return phrase("{provider} never asks for your password or code by phone, e-mail or message.", provider=provider)


def run_by(provider: str, operator: str) -> Phrase:
    """The sentence that names the operator."""
    return phrase("{provider} is run by {operator}.", provider=provider, operator=operator)


def client_site(client: Client, redirect_uri: str = "") -> Link | None:
    """A link to the client's site, from a registered redirect URI.

    That of `redirect_uri`, if it is registered. None for a client without one. Source: D16
    """
    known = redirect_uri if redirect_uri in client.redirect_uris else next(iter(client.redirect_uris), "")
    parts = urlsplit(known)
    # The own pages may lie below a path, and are entered at the one that they register.
    url = f"{parts.scheme}://{parts.netloc}/" if client.client_id else known
    return Link(url=url, text=phrase("Go to {name}", name=client.name)) if known else None


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

ACTIVE: Final = Label(phrase("Active"))
DISABLED: Final = Label(phrase("Disabled"), "error")
INVITED: Final = Label(phrase("Invited"), "warning")
PROBLEM: Final = Label(phrase("Problem"), "error")
WARNING: Final = Label(phrase("Warning"), "warning")


def enabled_label(enabled: bool) -> Label:
    """The state of a record that can be disabled."""
    return ACTIVE if enabled else DISABLED


MEMBER_STATES: Final[Mapping[MemberState, Phrase]] = {
    "active": phrase("Active"),
    "invited": phrase("Invited"),
    "suspended": phrase("Suspended"),
    "locked": phrase("Account disabled"),
}
_TONES: Final[Mapping[MemberState, Tone]] = {
    "active": "",
    "invited": "warning",
    "suspended": "error",
    "locked": "error",
}


def state_label(state: MemberState) -> Label:
    """The state of a member."""
    return Label(MEMBER_STATES[state], _TONES[state])


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


class Snippet(ViewPart, frozen=True, kw_only=True):
    """A text to copy."""

    title: str
    text: str
    note: str = ""
    """what it needs that this client does not have"""


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


def keep_left_out(form: Mapping[str, str], shown: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return hidden fields for rows that are left out elsewhere.

    `shown` are the values of the page's rows, whose own checkboxes say so. Source: D81
    """
    here = {f"{LEAVE_OUT}{value}" for value in shown}
    left_out = (each for each in form.items() if each[0].startswith(LEAVE_OUT) and each[0] not in here)
    return tuple(left_out) if "all" in form else ()


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


class View(Protocol):
    """A renderable view: a `Page`, one of `views`, or a package's own."""

    @property
    def template(self) -> str: ...
    @property
    def heading(self) -> Phrase: ...
    @property
    def frame(self) -> Frame: ...
    @property
    def errors(self) -> tuple[FieldError, ...]: ...


def in_frame(view: View, **members: object) -> View:
    """The view with other members of its frame."""
    struct = cast("PageView", view)
    return cast("View", replace(struct, frame=replace(struct.frame, **members)))
