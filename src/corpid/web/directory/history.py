"""The history of an entity in the portal: list, one change, CSV (D57, D61)."""

from __future__ import annotations

import asyncio
import re
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from corpid.flows.directory import appointments
from corpid.flows.directory.lists import list_records
from corpid.flows.directory.members import AmbiguousName
from corpid.flows.operations import history as flow
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.access_texts import MOST_NAMED
from corpid.rules.directory.lists import SERVICES
from corpid.rules.directory.names import is_storable, set_apart
from corpid.rules.directory.role_forms import day, day_fault
from corpid.texts import Phrase, phrase
from corpid.web.directory.page_context import PortalContext, PortalPage
from corpid.web.directory.requests import REQUESTS
from corpid.web.pages import change_sentences as texts
from corpid.web.pages.change_sentences import PAGE, Actions, fold_actions, read_actions
from corpid.web.pages.components import (
    Column,
    Facts,
    Field,
    FieldError,
    Filters,
    Group,
    Heading,
    Link,
    Paragraph,
    Table,
    Timeline,
    TimelineEntry,
    Value,
    View,
    pager_of,
    read_number,
    table,
)
from corpid.web.pages.errors import refusal_of
from corpid.web.pages.responses import CsvFile
from corpid.web.pages.translations import Translator, translator_of
from corpid.web.sites import NotFound, Section

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response

    from corpid.flows.operations.history import HistoryNames
    from corpid.rules.audit import AuditEntry, AuditPart

HISTORY: Final = "history"
_EXPORT: Final = f"{HISTORY}/export"
_CHANGE: Final = re.compile(rf"{HISTORY}/[1-9][0-9]{{0,17}}")
_LAST: Final = 5
"""changes on the page of a record"""
_MOST_EXPORTED: Final = 5000
"""changes in one CSV file"""
_MOST_READ: Final = 20
"""how often some thousand entries are looked through for one file"""
_EXPORT_PART: Final = 500
"""of them at a time: others run in between"""
_FILTERS: Final = ("person", "service", "kind", "from", "until")
_MOST_SERVICES: Final = 200


async def show_history(at: PortalContext) -> View:
    """The filtered list, fifty to a page."""
    wanted, errors = _read_filters(at)
    before = read_number(at.query.get("before", ""))
    try:
        found = await _read_actions(at, wanted, before=before, most=PAGE)
    except AmbiguousName as error:
        found, errors = Actions(groups=[], before=0), (*errors, ("person", refusal_of(error)))
    services = await list_records(at.registry, at.actor, SERVICES, limit=_MOST_SERVICES)
    kept = {name: at.query[name] for name in _FILTERS if at.query.get(name)}
    here, searched_on = at.path(HISTORY), bool(found.before) and not found.groups
    if searched_on:
        empty = phrase("Nothing was found among the latest changes. Search the older ones with “Next page”.")
    elif kept:
        empty = phrase("No change matches. Remove a filter, or choose other days.")
    else:
        empty = phrase("There are no changes yet. Each change by you or others is listed here.")
    every = (("", phrase("Every service")), *((each.service_id, each.name) for each in services.found))
    return at.build_page(
        phrase("History"),
        Table(
            caption=phrase("Changes, the latest first"),
            columns=(Column(phrase("When")), Column(phrase("Who")), Column(phrase("What changed"))),
            rows=tuple((each.at, each.by, each.text) for each in await _show_actions(at, found)),
            empty=empty,
            filters=Filters(
                action=here,
                fields=(
                    Field(name="person", label=phrase("User name"), value=await _shown_person(at, wanted.person)),
                    Field(
                        name="service", label=phrase("Service"), kind="words", value=wanted.service, words=every,
                        hint=phrase("Not all services are listed here.") if services.after else None,
                    ),
                    Field(
                        name="kind", label=phrase("Kind of change"), kind="words", value=wanted.kind,
                        words=(("", phrase("Every change")), *texts.KINDS.items()),
                    ),
                    Field(name="from", label=phrase("From"), kind="date", value=at.query.get("from", "")),
                    Field(name="until", label=phrase("Until"), kind="date", value=at.query.get("until", "")),
                ),
            ),
            pager=pager_of(here, kept, came=bool(before), after=found.before, name="before"),
            csv=at.path(_EXPORT, **kept),
        ),
        Paragraph(phrase("The last {most} changes of this list, at most", most=_MOST_EXPORTED), look="hint")
        if found.groups
        else None,
        errors=errors,
    )  # fmt: skip


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


async def _read_actions(at: PortalContext, wanted: flow.HistoryFilter, *, before: int, most: int) -> Actions:
    async def read(before: int, limit: int) -> AuditPart:
        return await flow.changes(at.registry, at.actor, wanted, before=before, limit=limit)

    return await read_actions(read, before=before, most=most)


async def _show_actions(at: PortalContext, found: Actions) -> tuple[TimelineEntry, ...]:
    """Each action in a line, which unfolds to its changes."""
    names = await flow.names(at.registry, at.actor, found.named)
    return fold_actions(found, names, lambda entry: _entry(at, entry, names))


async def list_recent(at: PortalContext, *, most: int) -> tuple[TimelineEntry, ...]:
    """The last actions, for the home page."""
    return await _show_actions(at, await _read_actions(at, flow.HistoryFilter(), before=0, most=most))


async def describe_last(at: PortalContext) -> Phrase | None:
    """The last action of the reader.

    None without a right to the history.
    """
    try:
        found = await _read_actions(at, flow.HistoryFilter(), before=0, most=1)
    except Forbidden:
        return None
    if not found.groups or found.groups[0][0].actor != at.actor.name:
        return None
    [some] = found.groups[:1]
    names = await flow.names(at.registry, at.actor, some[-MOST_NAMED:])
    return texts.describe_entries(some, names)


def _link(at: PortalContext, entry: AuditEntry, names: HistoryNames) -> Link:
    return at.link(f"{HISTORY}/{entry.number}", texts.describe_entry(entry, names))


def _entry(at: PortalContext, entry: AuditEntry, names: HistoryNames) -> TimelineEntry:
    author, approver = (
        texts.name_author(who, entry, names, at.actor.entity_id) if who else ""
        for who in (entry.actor, entry.detail.get("approved_by", ""))
    )
    return TimelineEntry(text=_link(at, entry, names), by=texts.name_both(author, approver), at=at.moment(entry.at))


async def show_last_changes(
    at: PortalContext, wanted: flow.HistoryFilter, concerns: Callable[[AuditEntry], bool], every: Link
) -> Group | None:
    """The last changes of a record, of those that fit `wanted`.

    None without any, or for a reader who may not see the history. `every` leads to more.
    """
    try:
        found = await flow.changes(at.registry, at.actor, wanted, before=0, limit=PAGE)
    except Forbidden:
        return None
    entries = [each for each in found.entries if concerns(each)][:_LAST]
    names = await flow.names(at.registry, at.actor, entries)
    timeline = Timeline(tuple(_entry(at, each, names) for each in entries))
    return Group(parts=(Heading(phrase("Last changes")), timeline, every)) if entries else None


async def show_change(at: PortalContext) -> View:
    """One change that concerns the entity."""
    entry = await flow.change(at.registry, at.actor, int(at.page.rpartition("/")[2]))
    if entry is None:
        raise NotFound
    names = await flow.names(at.registry, at.actor, [entry])
    own = at.actor.entity_id
    differences = texts.list_differences(entry, names, at.provider.policy.timezone)
    facts: list[tuple[Phrase, Value]] = [
        (phrase("Who"), texts.name_author(entry.actor, entry, names, own)),
        (phrase("When"), at.moment(entry.at)),
    ]
    if entry.request_id:
        facts.append((phrase("Reference"), entry.request_id))
    request_id = entry.object if flow.noun(entry) == "approval" else entry.approval
    return at.build_page(
        texts.describe_entry(entry, names),
        Facts(tuple(facts)),
        *(each for each in texts.list_notes(entry, names, own)),
        table(
            phrase("Before and after this change"),
            (phrase("What"), phrase("Before"), phrase("After")),
            ((name, _each(was), _each(becomes)) for name, was, becomes in differences),
        ),
        at.link(f"{REQUESTS}/{request_id}", phrase("See the request"))
        if request_id and entry.entity_id == own
        else None,
        Paragraph(phrase("Personal details of this change were erased."), look="hint") if entry.erased else None,
    )


def _each(values: tuple[str | Phrase, ...]) -> Value:
    return phrase("{names}", names=values) if len(values) > 1 else values[0] if values else None


# --- CSV


async def export_history(at: PortalContext) -> View | Response:
    """The filtered list as CSV (RFC 4180), bounded in rows and work."""
    wanted, errors = _read_filters(at)
    if errors:
        return await show_history(at)
    say = translator_of(at.visit.user.language)
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

    def listed(value: str | Phrase) -> str:
        return said(value) if isinstance(value, Phrase) else set_apart(value)

    own = at.actor.entity_id
    members = texts.list_differences(entry, names, at.provider.policy.timezone)
    was, becomes = (
        "; ".join(f"{said(each[0])}: {', '.join(map(listed, each[side]))}" for each in members if each[side])
        for side in (1, 2)
    )
    return [
        str(entry.number),
        at.moment(entry.at).isoformat(),
        said(texts.name_author(entry.actor, entry, names, own)),
        said(texts.describe_entry(entry, names)),
        was,
        becomes,
        said(flow.identity_of(entry, names)),
        flow.service_of(entry),
        entry.request_id,
    ]


SECTION: Final = Section[PortalContext](
    name=HISTORY,
    pages={HISTORY: PortalPage(view=show_history, offers_undo=True), _EXPORT: PortalPage(view=export_history)},
    named_pages={_CHANGE: PortalPage(view=show_change)},
    filters=frozenset({*_FILTERS, "before"}),
)
