"""The frame of every page."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec.structs import replace

from corpid.texts import Phrase, counted, phrase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.directory.lists import ListPage
    from corpid.rules.directory.lists import ListTotal
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
    """whether it may stand in no address"""


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
