"""The history of an entity in the portal: list, one change, CSV (D57, D61)."""

from __future__ import annotations

import asyncio
import re
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import urlencode

from corpid.flows.directory import appointments
from corpid.flows.directory.lists import list_records
from corpid.flows.directory.members import AmbiguousName
from corpid.flows.operations import history as flow
from corpid.rules.audit_records import AuditPart
from corpid.rules.directory.lists import SERVICES
from corpid.rules.directory.names import is_storable
from corpid.rules.directory.role_forms import day, day_fault
from corpid.texts import Phrase, phrase
from corpid.web.directory.page_context import PortalContext, PortalPage, frame, portal_path, section_link
from corpid.web.pages import change_sentences as texts
from corpid.web.pages.errors import refusal_of
from corpid.web.pages.layout import Pager, PageView, ViewPart, pager_of
from corpid.web.pages.responses import CsvFile
from corpid.web.pages.translations import ENGLISH, LANGUAGES, lookup, translator
from corpid.web.sites import NotFound, Section, read_number

if TYPE_CHECKING:
    from starlette.responses import Response

    from corpid.flows.operations.history import HistoryNames
    from corpid.rules.audit_records import AuditEntry
    from corpid.web.pages.layout import FieldError
    from corpid.web.pages.translations import Translator
    from corpid.web.pages.views import View

HISTORY: Final = "history"
_EXPORT: Final = f"{HISTORY}/export"
_CHANGE: Final = re.compile(rf"{HISTORY}/[1-9][0-9]{{0,17}}")
_PAGE: Final = 50
_MOST_EXPORTED: Final = 5000
"""changes in one CSV file"""
_MOST_READ: Final = 20
"""how often some thousand entries are looked through for one file"""
_EXPORT_PART: Final = 500
"""of them at a time: others run in between"""
_FILTERS: Final = ("person", "service", "kind", "from", "until")
_MOST_SERVICES: Final = 200


class HistoryRow(ViewPart, frozen=True, kw_only=True):
    """A change in the list."""

    at: datetime
    who: str | Phrase
    what: Phrase
    url: str
    """the address of the change alone"""


class History(PageView, frozen=True, kw_only=True):
    """The changes of an entity's records, the latest first."""

    template: ClassVar[str] = "manage/history.html"
    heading: ClassVar[Phrase] = phrase("History")

    action: str
    person: str
    services: tuple[tuple[str, str | Phrase], ...]
    service: str
    kinds: tuple[tuple[str, Phrase], ...]
    kind: str
    since: str
    until: str
    narrowed: bool
    rows: tuple[HistoryRow, ...]
    more_services: bool = False
    """whether there are more than can be chosen here"""
    export: str
    most_exported: int = _MOST_EXPORTED
    searched_on: bool = False
    """whether the search goes on on the next page, although this one is not full"""
    pager: Pager


class ChangePage(PageView, frozen=True, kw_only=True):
    """One change, before and after."""

    template: ClassVar[str] = "manage/change.html"
    heading: ClassVar[Phrase] = phrase("One change")

    what: Phrase
    who: str | Phrase
    at: datetime
    differences: tuple[tuple[Phrase, tuple[str | Phrase, ...], tuple[str | Phrase, ...]], ...]
    erased: bool
    reference: str


async def show_history(at: PortalContext) -> View:
    """The filtered list, fifty to a page."""
    wanted, errors = _read_filters(at)
    before = read_number(at.query.get("before", ""))
    try:
        found = await flow.changes(at.registry, at.actor, wanted, before=before, limit=_PAGE)
    except AmbiguousName as error:
        found, errors = AuditPart(entries=[], before=0), (*errors, ("person", refusal_of(error)))
    names = await flow.names(at.registry, at.actor, found.entries)
    services = await list_records(at.registry, at.actor, SERVICES, limit=_MOST_SERVICES)
    kept = {name: at.query[name] for name in _FILTERS if at.query.get(name)}
    here = portal_path(at.web, HISTORY)
    return History(
        frame=frame(at, section=HISTORY),
        errors=errors,
        action=here,
        person=await _shown_person(at, wanted.person),
        services=(("", phrase("Every service")), *((each.service_id, each.name) for each in services.found)),
        service=wanted.service,
        more_services=bool(services.after),
        kinds=(("", phrase("Every change")), *texts.KINDS.items()),
        kind=wanted.kind,
        since=at.query.get("from", ""),
        until=at.query.get("until", ""),
        narrowed=bool(kept),
        rows=tuple(_row(at, each, names) for each in found.entries),
        export=portal_path(at.web, _EXPORT) + (f"?{urlencode(kept)}" if kept else ""),
        searched_on=bool(found.before) and len(found.entries) < _PAGE,
        pager=pager_of(here, kept, came=bool(before), after=found.before, name="before"),
    )


async def _shown_person(at: PortalContext, named: str) -> str:
    """The user name for the field, if a membership was named."""
    found = await appointments.load_member_level(at.registry, at.actor, named) if is_storable(named) else None
    return found.identity if found is not None and not found.membership.invited else named


def _read_filters(at: PortalContext) -> tuple[flow.HistoryFilter, tuple[FieldError, ...]]:
    """The filters, and what is wrong with them."""
    errors: list[FieldError] = []
    days: dict[str, date | None] = {}
    for name in ("from", "until"):
        typed = at.query.get(name, "")
        days[name] = day(typed)
        if typed and days[name] is None:
            errors.append((name, day_fault(typed)))
    since, until = days["from"], days["until"]
    if since and until and since > until:
        errors.append(("until", phrase("The last day is before the first one.")))
    kind = at.query.get("kind", "")
    return flow.HistoryFilter(
        person=at.query.get("person", "").strip(),
        service=at.query.get("service", ""),
        kind=kind if kind in flow.KINDS else "",
        since=_seconds(at, since) if since else 0,
        until=_seconds(at, until + timedelta(days=1)) if until and until < date.max else 0,
    ), tuple(errors)


def _seconds(at: PortalContext, day: date) -> int:
    """The beginning of a day in the deployment's time zone (D23)."""
    zone = at.provider.policy.timezone
    return max(1, int(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()))


def _row(at: PortalContext, entry: AuditEntry, names: HistoryNames) -> HistoryRow:
    return HistoryRow(
        at=at.moment(entry.at),
        who=texts.name_author(entry.actor, entry, names, at.actor.entity_id),
        what=texts.describe_entry(entry, names),
        url=portal_path(at.web, f"{HISTORY}/{entry.number}"),
    )


async def list_recent(at: PortalContext, *, most: int) -> tuple[HistoryRow, ...]:
    """The last changes, for the home page."""
    found = await flow.changes(at.registry, at.actor, flow.HistoryFilter(), before=0, limit=most)
    names = await flow.names(at.registry, at.actor, found.entries)
    return tuple(_row(at, each, names) for each in found.entries)


async def show_change(at: PortalContext) -> View:
    """One change that concerns the entity."""
    entry = await flow.change(at.registry, at.actor, int(at.page.rpartition("/")[2]))
    if entry is None:
        raise NotFound
    names = await flow.names(at.registry, at.actor, [entry])
    own = at.actor.entity_id
    return ChangePage(
        frame=frame(at, section=HISTORY, up=section_link(at, HISTORY)),
        what=texts.describe_entry(entry, names),
        who=texts.name_author(entry.actor, entry, names, own),
        at=at.moment(entry.at),
        notes=texts.list_notes(entry, names, own),
        differences=texts.list_differences(entry, names, at.provider.policy.timezone),
        erased=entry.erased,
        reference=entry.request_id,
    )


# --- CSV


async def export_history(at: PortalContext) -> View | Response:
    """The filtered list as CSV (RFC 4180), bounded in rows and work."""
    wanted, errors = _read_filters(at)
    if errors:
        return await show_history(at)
    say = translator(lookup((at.visit.user.language,), LANGUAGES) or ENGLISH)
    table = CsvFile()
    table.write([say.say(each) for each in _COLUMNS])
    before, left = 0, _MOST_EXPORTED
    for _ in range(_MOST_READ):
        try:
            found = await flow.changes(at.registry, at.actor, wanted, before=before, limit=min(left, _EXPORT_PART))
        except AmbiguousName:
            return await show_history(at)
        names = await flow.names(at.registry, at.actor, found.entries)
        for each in found.entries:
            table.write(_line(at, each, names, say))
        before, left = found.before, left - len(found.entries)
        if not before or not left:
            break
        await asyncio.sleep(0)
    if before:
        table.write([say.say(_NOT_ALL)])
    return table.response(f"history-{at.context.today}")


_NOT_ALL: Final = phrase(
    "This file is not complete: older changes may follow. For them, choose an earlier last day, and download again."
)
"""the last line of a file that stops before the history does"""
_COLUMNS: Final = (
    phrase("Number"), phrase("Time"), phrase("Who"), phrase("What changed"), phrase("Before"), phrase("After"),
    phrase("User name"), phrase("Service"), phrase("Reference"),
)  # fmt: skip


def _line(at: PortalContext, entry: AuditEntry, names: HistoryNames, say: Translator) -> list[str]:
    def said(value: object) -> str:
        return say.say(value) if isinstance(value, Phrase) else str(value)

    own = at.actor.entity_id
    members = texts.list_differences(entry, names, at.provider.policy.timezone)
    was, becomes = (
        "; ".join(f"{said(each[0])}: {', '.join(map(said, each[side]))}" for each in members if each[side])
        for side in (1, 2)
    )
    return [
        str(entry.number),
        at.moment(entry.at).isoformat(),
        said(texts.name_author(entry.actor, entry, names, own)),
        said(texts.describe_entry(entry, names)),
        was,
        becomes,
        flow.identity_of(entry, names),
        flow.service_of(entry),
        entry.request_id,
    ]


SECTION: Final = Section[PortalContext](
    pages={HISTORY: PortalPage(view=show_history), _EXPORT: PortalPage(view=export_history)},
    named_pages={_CHANGE: PortalPage(view=show_change)},
    filters=frozenset({*_FILTERS, "before"}),
)
