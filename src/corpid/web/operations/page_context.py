"""An operator in the console: frame, reason, question, version of a form (D53, D54, D57)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

from msgspec.structs import replace

from corpid.flows.authentication import interactions
from corpid.flows.directory.lists import ListPage
from corpid.flows.directory.objects import to_rows
from corpid.flows.directory.single_records import BY_KIND, update_record
from corpid.flows.directory.write import Refused
from corpid.flows.encrypted_values import decrypt_value, encrypt_value
from corpid.flows.operations.console import ConsoleRequest, is_allowed
from corpid.jose.encoding import MalformedToken
from corpid.rules.directory.access import DeploymentOperator, Forbidden
from corpid.rules.directory.approvals import MOST_REASON_CHARACTERS
from corpid.rules.directory.lists import MOST_COUNTED
from corpid.rules.directory.records import Conflict, Entity, Service
from corpid.texts import InvalidInput, Phrase, phrase
from corpid.web import sites
from corpid.web.lists import SORT, export_list, read_sort, sorting_column
from corpid.web.pages.components import (
    ROW,
    Column,
    Field,
    Filters,
    Frame,
    Link,
    Navigation,
    NavigationLink,
    Paragraph,
    Table,
    Value,
    counted_pager,
)
from corpid.web.pages.errors import reason_of
from corpid.web.sites import EditConflict, PageContext, await_found, version_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    import msgspec
    from starlette.responses import Response

    from corpid.rules.directory.lists import RecordList
    from corpid.web.pages.components import View


@dataclass(frozen=True, kw_only=True)
class ConsoleContext(PageContext[ConsoleRequest]):
    """An operator at a console page, with their form, if sent."""

    @property
    def actor(self) -> DeploymentOperator:
        return self.visit.actor

    @property
    def reason_hint(self) -> Phrase:
        return KEPT_BY_AUDIT

    @property
    def searched(self) -> str:
        """The text of a search, which is encrypted in the address (D82).

        Empty elsewhere, and if it is not of this person.
        """
        try:
            sealed = self.query.get(SEARCHED, "") if self.page == SEARCH else ""
            return decrypt_value(self.context, sealed, _SEARCHED_KIND, bound_to=(self.actor.user_id,)).decode()
        except MalformedToken:
            return ""

    def search_page(self, text: str) -> str:
        """The page on which a text is searched."""
        sealed = encrypt_value(
            self.context, text.encode(errors="replace"), _SEARCHED_KIND, bound_to=(self.actor.user_id,)
        )
        return f"{SEARCH}?{urlencode({SEARCHED: sealed})}"

    def section_link(self, section: str) -> Link:
        return self.link(section, SECTIONS[section])

    def frame(self, *, up: Link | None = None, names: str = "", step_name: str = "") -> Frame:
        visit = self.visit
        return Frame(
            form_token=interactions.form_token(self.context, visit.browser.browser_id, visit.form),
            step_name=step_name,
            names=names,
            up=up,
            account_language=visit.user.language,
            here=self.path(self.here),
            navigation=Navigation(
                label=phrase("Console"),
                title=phrase("Console of {name}", name=self.provider.policy.name),
                person=visit.user.name,
                search=self.link(SEARCH, phrase("Search by name, identifier or reference")),
                searched=self.searched,
                posted=True,
                links=tuple(
                    NavigationLink(url=self.path(path), text=name, current=path == self.section)
                    for path, name in SECTIONS.items()
                ),
            ),
        )

    def record_link(self, section: str, key: str, name: str) -> Link:
        """A link to a record's page."""
        return self.link(record_page(section, key), name)

    def allowed_link(self, page: str, text: Phrase | str, about: str = "", **query: str) -> Link | None:
        """A link to a page.

        None if it needs a right that the operator lacks. Source: D53
        """
        found = self.page_at(page)
        if found is None or (found.needs and not is_allowed(self.actor, *found.needs)):
            return None
        return self.link(page, text, about, **query)

    def actor_with_reason(self) -> DeploymentOperator:
        """The operator with the reason that was sent. Raises InvalidInput."""
        reason = " ".join(self.form.get(REASON, "").split())
        if not reason:
            raise InvalidInput(phrase("Say why. The audit keeps your reason."), field=REASON)
        if len(reason) > MOST_REASON_CHARACTERS or not reason.isprintable():
            raise InvalidInput(phrase("Use at most {count} characters.", count=MOST_REASON_CHARACTERS), field=REASON)
        return replace(self.actor, reason=reason)

    def step_of(self, record: msgspec.Struct) -> str:
        """The version in the sent form, otherwise that of the record."""
        return self.form.get("step", version_of(record))


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
SEARCHED: Final = "q"
"""the parameter that has what is searched, encrypted: it may be an identity number (D82)"""
_SEARCHED_KIND: Final = "console search"
REASON: Final = "reason"
"""the field"""
SEARCH_CHARACTERS: Final = 100
"""of a search text; the rest is ignored"""
AT_ONCE: Final = 50
"""rows of a list on one page"""
_EXPORTED_AT_ONCE: Final = 200
_FORMAT: Final = "format"
_CSV: Final = "csv"
"""the format of a list in place of its page, as in the admin API"""
LIST_FILTERS: Final = frozenset({"search", SORT, "after", "before", ROW})
"""parameters of a page of a list"""
ONLY_FIRST: Final = phrase("Only the first ones are shown.")
KEPT_BY_AUDIT: Final = phrase("Required. It is kept in the audit with your name.")
"""the hint of a reason"""


def record_page(section: str, key: str, page: str = "") -> str:
    """The path of a record's page in the console."""
    return f"{section}/{quote(key, safe='')}" + (f"/{page}" if page else "")


def admit(at: ConsoleContext, page: ConsolePage) -> None:
    """Require the right that a page declares.

    Raises access.Forbidden. Source: D53
    """
    if page.needs and not is_allowed(at.actor, *page.needs):
        raise Forbidden(at.actor, *page.needs)


async def show_list(
    at: ConsoleContext,
    path: str,
    listed: RecordList,
    read: Callable[..., Awaitable[ListPage[T]]],
    row: Callable[[T], tuple[Value, ...]],
    *,
    heading: Phrase,
    columns: tuple[tuple[Phrase, str], ...],
    label: Phrase,
    none: Phrase,
    not_found: Phrase,
    add: Link | None = None,
    up: Link | None = None,
) -> View | Response:
    """A page of a list, or the whole list as CSV.

    It is empty for a place or search that has none. `columns` are heads, each with the order that it sorts by or an
    empty text; the list has the first one's by default. `read` takes the order, the search and the place, and finds
    records of the list `listed`; their CSV has the columns of the admin API. `none` says that there is nothing,
    `not_found` that a search finds nothing. Raises access.Forbidden. Source: D59, D83
    """
    orders, search = [order for _, order in columns if order], at.query.get("search", "").strip()[:SEARCH_CHARACTERS]
    sort = read_sort(at.query, orders)
    ordered = {"order": sort.removeprefix("-") or orders[0], "descending": sort.startswith("-"), "search": search}
    if at.query.get(_FORMAT) == _CSV:
        resource = BY_KIND[listed.kind]

        async def read_rows(after: str, limit: int) -> ListPage[list[str]]:
            page = await await_found(read(**ordered, after=after, limit=limit))
            return ListPage(found=tuple(await to_rows(at.registry, resource, page.found)), after=page.after)

        return await export_list(at, resource.path, resource.columns, read_rows, iter, at_once=_EXPORTED_AT_ONCE)
    before = at.query.get("before", "")
    after = "" if before else at.query.get("after", "")
    try:
        page = await read(**ordered, after=after, before=before, limit=AT_ONCE, count_to=MOST_COUNTED)
    except Refused:
        page = ListPage(found=())
    sorted_by = "" if page.by_word else sort or orders[0]
    searched, sorts = {"search": search} if search else {}, {SORT: sort} if sort else {}
    return at.build_page(
        heading,
        Table(
            caption=heading,
            columns=tuple(
                sorting_column(at, path, text, order, sorted_by, searched) if order else Column(text)
                for text, order in columns
            ),
            rows=tuple(map(row, page.found)),
            empty=not_found if search else none,
            filters=Filters(
                action=at.path(path),
                fields=(Field(name="search", label=label, value=search, kind="search", most=SEARCH_CHARACTERS),),
                kept=tuple(sorts.items()),
            ),
            pager=counted_pager(at.path(path), searched | sorts, at.query, page, most=AT_ONCE),
            csv=at.path(path, **searched, **sorts, **{_FORMAT: _CSV}),
        ),
        Paragraph(phrase("This search is too broad to be sorted. Add a word."), look="hint") if page.by_word else None,
        up=up,
        main_action=add,
    )


def check_current(at: ConsoleContext, record: msgspec.Struct, outdated: Phrase) -> None:
    """Raise EditConflict unless a record is as the form showed it.

    `outdated` is its sentence.
    """
    if at.form.get("step", "") != version_of(record):
        raise EditConflict(outdated)


async def save_record(
    at: ConsoleContext,
    kind: Literal["entity", "service"],
    record: Entity | Service,
    members: Mapping[str, object],
    outdated: Phrase,
) -> None:
    """Change an entity or a service.

    Raises InvalidInput, EditConflict with the sentence `outdated`, access.Forbidden.
    """
    key = f"{kind}_id"
    try:
        await update_record(
            at.registry, at.provider.passwords, kind, {key: getattr(record, key)}, members,
            actor=at.actor_with_reason(), was=record,
        )  # fmt: skip
    except Conflict:
        raise EditConflict(outdated) from None
    except Refused as refused:
        raise InvalidInput(phrase("It was not changed: {reason}.", reason=reason_of(refused))) from None
