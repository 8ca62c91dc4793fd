"""An operator in the console: frame, reason, question, version of a form (D53, D54, D57)."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from corpid.flows.authentication import interactions
from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory.lists import ListPage
from corpid.flows.directory.write import Refused
from corpid.flows.operations.console import ConsoleRequest, is_allowed
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.approvals import MOST_REASON_CHARACTERS
from corpid.rules.directory.lists import MOST_COUNTED
from corpid.texts import phrase
from corpid.web import sites
from corpid.web.pages.components import Column, Fields, Filters, Form, Page, Paragraph, Radios, Table, Value
from corpid.web.pages.layout import Field, Frame, Link, Navigation, NavigationLink, pager_of
from corpid.web.sites import PageContext, site_path

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from corpid.rules.directory.actors import DeploymentOperator
    from corpid.texts import Phrase
    from corpid.web.context import WebContext
    from corpid.web.pages.layout import FieldError


@dataclass(frozen=True, kw_only=True)
class ConsoleContext(PageContext[ConsoleRequest]):
    """An operator at a console page, with their form, if sent."""

    @property
    def actor(self) -> DeploymentOperator:
        return self.visit.actor


T = TypeVar("T")
ConsolePage: TypeAlias = sites.SitePage[ConsoleContext]
"""a page of this site"""

SECTIONS: Final[Mapping[str, Phrase]] = {
    "": phrase("Overview"),
    "entities": phrase("Organisations"),
    "people": phrase("People"),
    "services": phrase("Services"),
    "clients": phrase("Clients"),
    "keys": phrase("Signing keys"),
    "audit": phrase("Audit"),
    "maintenance": phrase("Maintenance"),
}
"""the sections of the console by path"""
SEARCH: Final = "search"
"""the page that searches everything"""
REASON: Final = "reason"
"""the field"""
SEARCH_CHARACTERS: Final = 100
"""of a search text; the rest is ignored"""
AT_ONCE: Final = 50
"""rows of a list on one page"""
ONLY_FIRST: Final = phrase("Only the first ones are shown.")
KEPT_BY_AUDIT: Final = phrase("It is kept in the audit with your name.")
"""the hint of a reason"""


def console_path(web: WebContext, page: str = "") -> str:
    return site_path(web, "console", page)


def record_page(section: str, key: str, page: str = "") -> str:
    """The path of a record's page in the console."""
    return f"{section}/{quote(key, safe='')}" + (f"/{page}" if page else "")


def record_link(at: ConsoleContext, section: str, key: str, name: str) -> Link:
    """A link to a record's page."""
    return Link(url=console_path(at.web, record_page(section, key)), text=name)


def section_link(at: ConsoleContext, section: str) -> Link:
    """A link to the first page of a section."""
    return Link(url=console_path(at.web, section), text=SECTIONS[section])


def admit(at: ConsoleContext, page: ConsolePage) -> None:
    """Require the right that a page declares.

    Raises access.Forbidden. Source: D53
    """
    if page.needs and not is_allowed(at.actor, *page.needs):
        raise Forbidden(at.actor, *page.needs)


def path_if_allowed(at: ConsoleContext, page: str) -> str:
    """The address path of a page.

    Empty if it needs a right that the operator lacks. Source: D53
    """
    found = at.page_at(page)
    if found is None or (found.needs and not is_allowed(at.actor, *found.needs)):
        return ""
    return console_path(at.web, page)


async def show_list(
    at: ConsoleContext,
    path: str,
    read: Callable[..., Awaitable[ListPage[T]]],
    row: Callable[[T], tuple[Value, ...]],
    *,
    heading: Phrase,
    columns: tuple[Phrase, ...],
    label: Phrase,
    ways: tuple[tuple[str, Phrase], ...] = (),
    none: Phrase,
    not_found: Phrase,
    add: Link | None = None,
    up: Link | None = None,
) -> Page:
    """A page of a list.

    It is empty for a place or search that has none. `read` takes the order (one of `ways`, the first by default), the
    search and the place; `none` says that there is nothing, `not_found` that a search finds nothing. Raises
    access.Forbidden. Source: D83
    """
    orders, search = [name for name, _ in ways], at.query.get("search", "").strip()[:SEARCH_CHARACTERS]
    by = next((name for name in orders if name == at.query.get("by")), orders[0] if orders else "")
    before = at.query.get("before", "")
    after = "" if before else at.query.get("after", "")
    ordered = {"order": by} if ways else {}
    try:
        page = await read(search=search, after=after, before=before, limit=AT_ONCE, count_to=MOST_COUNTED, **ordered)
    except Refused:
        page = ListPage(found=())
    here, kept = console_path(at.web, path), {"search": search, "by": by if by not in orders[:1] else ""}
    known = {name: value for name, value in kept.items() if value}
    searched = Field(name="search", label=label, value=search, kind="search", most=SEARCH_CHARACTERS)
    return Page(
        frame=frame(at, section=path.partition("/")[0], up=up),
        heading=heading,
        main_action=add,
        parts=(
            Table(
                caption=heading,
                columns=tuple(map(Column, columns)),
                rows=tuple(map(row, page.found)),
                empty=not_found if search else none,
                filters=Filters(
                    action=here,
                    fields=(
                        *(
                            [Field(name="by", label=phrase("Sort by"), kind="words", value=by, words=ways)]
                            if ways
                            else []
                        ),
                        searched,
                    ),
                ),
                pager=pager_of(
                    here,
                    known,
                    came=bool(after or page.before),
                    after=page.after,
                    before=page.before,
                    total=page.total,
                ),
            ),
            Paragraph(text=phrase("This search is too broad to be sorted. Add a word."), look="hint")
            if ways and page.by_word
            else None,
        ),
    )


def frame(at: ConsoleContext, *, section: str = "", up: Link | None = None, step_name: str = "") -> Frame:
    """The frame of a console page; `section` is a key of SECTIONS."""
    web, visit = at.web, at.visit
    return Frame(
        form_token=interactions.form_token(at.context, visit.browser.browser_id, visit.form),
        step_name=step_name,
        up=up,
        account_language=visit.user.language,
        here=console_path(web, at.here),
        navigation=Navigation(
            label=phrase("Console"),
            title=phrase("Console of {name}", name=at.provider.policy.name),
            person=visit.user.name,
            search=Link(url=console_path(web, SEARCH), text=phrase("Search by name, identifier or reference")),
            links=tuple(
                NavigationLink(url=console_path(web, path), text=name, current=path == section)
                for path, name in SECTIONS.items()
            ),
        ),
    )


def actor_with_reason(at: ConsoleContext) -> DeploymentOperator:
    """The operator with the reason that was sent. Raises InvalidInput."""
    reason = " ".join(at.form.get(REASON, "").split())
    if not reason:
        raise InvalidInput(phrase("Say why. The audit keeps your reason."), field=REASON)
    if len(reason) > MOST_REASON_CHARACTERS or not reason.isprintable():
        raise InvalidInput(phrase("Use at most {count} characters.", count=MOST_REASON_CHARACTERS), field=REASON)
    return replace(at.actor, reason=reason)


def version_of(record: msgspec.Struct) -> str:
    """The version of a record, for the field `step` of its form."""
    return sha256(msgspec.json.encode(record)).hexdigest()


def step_of(at: ConsoleContext, record: msgspec.Struct) -> str:
    """The version in the sent form, otherwise that of the record."""
    return at.form.get("step", version_of(record))


def is_current(at: ConsoleContext, record: msgspec.Struct) -> bool:
    """Return whether a record is still as the sent form showed it."""
    return at.form.get("step", "") == version_of(record)


def question(
    at: ConsoleContext,
    section: str,
    up: Link,
    heading: Phrase,
    consequences: tuple[Phrase, ...],
    button: Phrase,
    *,
    destroys: bool = False,
    decision: str = "yes",
    to_type: str = "",
    choices: tuple[tuple[str, Phrase, Phrase], ...] = (),
    choices_legend: Phrase | None = None,
    errors: tuple[FieldError, ...] = (),
) -> Page:
    """The question of a page, with what was typed already.

    `up` leads back; `errors` are those that the page has before anything is sent.
    """
    typed = Field(
        name="typed",
        label=phrase("Enter this to continue"),
        hint=to_type,
        value=at.form.get("typed", ""),
    )
    return Page(
        frame=frame(at, section=section, up=up),
        heading=heading,
        parts=(
            *(Paragraph(text=each) for each in consequences),
            Form(
                parts=(
                    Radios(name="choice", legend=choices_legend, options=choices, value=at.form.get("choice", ""))
                    if choices_legend
                    else None,
                    Fields(fields=(typed,)) if to_type else None,
                ),
                hidden=(("decision", decision),),
                reason=KEPT_BY_AUDIT,
                button=button,
                danger=destroys,
            ),
        ),
        errors=(*at.errors, *errors),
    )
