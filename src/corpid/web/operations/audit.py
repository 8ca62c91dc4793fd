"""The audit in the console: entries by filter, verification, export (D53, D57, D58)."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response, StreamingResponse

from corpid.flows import encrypted_values
from corpid.flows.encrypted_values import StoredForm
from corpid.flows.operations import audit, history
from corpid.rules.audit import AuditAction, AuditEntry, AuditPart, AuditQuery
from corpid.rules.directory import audit_reading
from corpid.rules.directory.access_texts import RequestNames
from corpid.rules.limits import DAY
from corpid.rules.references import find_reference
from corpid.texts import Phrase, phrase
from corpid.web.operations.jobs import VERIFY
from corpid.web.operations.page_context import AT_ONCE, KEPT_BY_AUDIT, REASON, ConsoleContext, ConsolePage, record_page
from corpid.web.pages import change_sentences
from corpid.web.pages.change_sentences import fold_actions, read_actions
from corpid.web.pages.components import (
    Actions,
    Cell,
    Column,
    Details,
    Field,
    FieldError,
    Filters,
    Form,
    Label,
    Link,
    LinkedName,
    Part,
    Table,
    Timeline,
    TimelineEntry,
    Value,
    View,
    pager_of,
    read_number,
)
from corpid.web.pages.responses import NO_STORE
from corpid.web.sites import FormResult, InvalidForm, NotFound, Section, SeeOther

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpid.flows.operations.history import HistoryNames

AUDIT: Final = "audit"
EXPORT: Final = "export-audit"
REFERENCE_PAGE: Final = "reference"
"""its look-up (`lookup`)"""
_ENTRY: Final = re.compile(rf"{AUDIT}/[0-9]{{1,18}}")
_SUBJECTS: Final[Mapping[Phrase, tuple[str, ...]]] = {
    phrase("Sign-ins"): ("sign_in", "session"),
    phrase("Links and set-up"): ("link", "enrolment", "factors"),
    phrase("People"): ("user", "credentials"),
    phrase("Organisations and their people"): ("entity", "membership", "administrator", "access_review"),
    phrase("Access"): ("assignment",),
    phrase("Third parties"): ("grant", "third_party_assignment"),
    phrase("Requests"): ("approval",),
    phrase("Consents"): ("consent",),
    phrase("Clients"): ("client", "code", "assertion", "proof"),
    phrase("Services"): ("service",),
    phrase("API clients and tokens"): ("api_client", "provisioning_token"),
    phrase("Operators"): ("operator",),
    phrase("Signing keys"): ("key",),
    phrase("The deployment"): ("maintenance", "job", "store", "deployment", "directory", "audit"),
}
"""nouns of actions by what they are about, in the order of the list"""
_NOUNS: Final = {f"{noun}.": subject for subject, nouns in _SUBJECTS.items() for noun in nouns}
_ACTION_GROUPS: Final = tuple(
    (subject, tuple((each.value, each.summary) for each in AuditAction if each.partition(".")[0] in nouns))
    for subject, nouns in _SUBJECTS.items()
)
_ACTIONS: Final = frozenset(value for _, actions in _ACTION_GROUPS for value, _ in actions)
_RECENT: Final = 10
"""entries on the page of a record"""
ENTRY_COLUMNS: Final = tuple(map(Column, (phrase("Time"), phrase("Who"), phrase("About"), phrase("What"))))
FILTERS: Final = ("user", "entity", "client", "action", "since")
_UNTIL: Final = "until"
_FILE: Final = f"{EXPORT}/file"
_NAME: Final = "name"
"""the parameter that names a recorded export"""
_WANTED: Final = "wanted"


async def show_audit(at: ConsoleContext) -> View:
    """Entries that fit the filters, the latest first. Raises access.Forbidden."""
    given = {name: value.strip() for name in (*FILTERS, _UNTIL) if (value := at.query.get(name, "")).strip()}
    errors: list[FieldError] = []
    before = read_number(at.query.get("before", ""))
    query = msgspec.structs.replace(await query_of(at, given, errors), before=before)
    until = _read_end(at, given, errors)
    here = at.path(AUDIT)
    if errors:
        # Rights are asked for what cannot be read, too.
        query = msgspec.structs.replace(query, since=int(at.context.now))
    part = await audit.read_part(at.registry, query, limit=AT_ONCE, actor=at.actor, until=until)
    rows = () if errors else await entry_rows(at, part.entries)
    verify = at.allowed_link(VERIFY, phrase("Verify the audit"))
    export = at.allowed_link(EXPORT, phrase("Export these entries"), **given)
    return at.build_page(
        phrase("Audit"),
        Table(
            caption=phrase("The latest entries first"),
            columns=ENTRY_COLUMNS,
            rows=rows,
            empty=None if errors else phrase("No entry matches these filters."),
            filters=Filters(action=here, fields=_fields(given)),
            pager=pager_of(
                here, given, came=bool(before), after=0 if errors else part.before, name="before",
                searched_on=len(rows) < AT_ONCE,
            ),
        ),
        Actions(tuple(filter(None, (verify, export)))),
        errors=tuple(errors),
    )  # fmt: skip


def _fields(given: Mapping[str, str]) -> tuple[Field, ...]:
    def field(name: str, label: Phrase, kind: str = "text", **more: Any) -> Field:  # noqa: ANN401 - members of Field
        return Field(name=name, label=label, kind=kind, value=given.get(name, ""), **more)

    chosen = given.get("action", "")
    other = ((chosen, _NOUNS.get(chosen, chosen)),) if chosen and chosen not in _ACTIONS else ()
    return (
        field("user", phrase("User name or identifier")),
        field("entity", phrase("Organisation")),
        field("client", phrase("Client")),
        field("action", phrase("Action"), "words", words=(("", phrase("Every action")), *other), groups=_ACTION_GROUPS),
        field("since", phrase("From"), "date"),
        field(_UNTIL, phrase("Until"), "date"),
    )


async def entry_rows(
    at: ConsoleContext, entries: Sequence[AuditEntry]
) -> tuple[tuple[datetime, Value, Value, Value], ...]:
    """Rows of entries, by ENTRY_COLUMNS: sentences with links to what they name."""
    names = await history.names_for_operator(at.registry, at.actor, entries)
    linked = _link_names(at, names)
    return tuple(
        (at.moment(each.at), _name_author(each.actor, linked), _about(each, linked), _tell(at, each, names, linked))
        for each in entries
    )


def _tell(at: ConsoleContext, entry: AuditEntry, names: HistoryNames, linked: HistoryNames) -> Cell:
    """The sentence of an entry, with its details."""
    refused = [Label(phrase("refused"), "warning")] if entry.outcome == "refused" else []
    reason = entry.detail.get("reason_given")
    sentence = Cell(
        values=(change_sentences.describe_entry(entry, linked), *refused), notes=(reason,) if reason else ()
    )
    return Cell(values=(sentence, _details(at, entry, names)))


async def recent_entries(at: ConsoleContext, query: AuditQuery, kept: Mapping[str, str]) -> tuple[Part, ...]:
    """The latest entries about one record, each action in a line.

    A link leads to all of them: `kept` are the filters of the audit that mean the same. Those of an organisation or a
    client do not repeat whom they are about.
    """

    async def read(before: int, limit: int) -> AuditPart:
        wanted = msgspec.structs.replace(query, before=before)
        return await audit.read_part(at.registry, wanted, limit=limit, actor=at.actor)

    found = await read_actions(read, before=0, most=_RECENT)
    names = await history.names_for_operator(at.registry, at.actor, found.named)
    linked, own = _link_names(at, names), bool(query.entity_id or query.client_id)

    def line(entry: AuditEntry) -> TimelineEntry:
        author, about = _name_author(entry.actor, linked), None if own else _about(entry, linked)
        if approver := entry.detail.get("approved_by"):
            author = change_sentences.name_both(author, _name_author(approver, linked))
        by = Cell(values=(author, *([about] if about else [])))
        return TimelineEntry(text=_tell(at, entry, names, linked), by=by, at=at.moment(entry.at))

    entries = fold_actions(found, linked, line)
    every = at.link(AUDIT, phrase("Show all in the audit"), **kept)
    return Timeline(entries) if entries else phrase("Nothing is recorded."), every


def _link_names(at: ConsoleContext, names: HistoryNames) -> HistoryNames:
    """The same names as links, of what there still is."""

    def linked(known: Mapping[str, str], page: str, shown: Mapping[str, str]) -> dict[str, str]:
        return {
            key: LinkedName(name, at.path(record_page(page, key))) if key in shown else name
            for key, name in known.items()
        }

    services = linked(names.services, "services", names.services)
    entities = linked(names.entities, "entities", names.entities)
    asked = {
        request_id: RequestNames(
            people=linked(each.people, "people", names.user_names), services=services, entities=entities
        )
        for request_id, each in names.requests.names.items()
    }
    return replace(
        names,
        people=linked(names.people, "people", names.user_names),
        services=services,
        entities=entities,
        clients=linked(names.clients, "client", names.clients),
        requests=msgspec.structs.replace(names.requests, names=asked),
    )


def _name_author(actor: str, names: HistoryNames) -> str | Phrase:
    kind, _, key = actor.partition(":")
    if kind == "operator":
        return phrase("{name} (operator)", name=names.people[key]) if key in names.people else phrase("An operator")
    return names.people.get(key, key) if kind == "user" else actor


def _about(entry: AuditEntry, names: HistoryNames) -> Value:
    """The organisations and the client of an entry."""
    found = [names.entities.get(each, each) for each in (entry.entity_id, entry.other_entity_id) if each]
    found += [names.clients.get(entry.client_id, entry.client_id)] if entry.client_id else []
    return Cell(values=tuple(found)) if found else None


def _details(at: ConsoleContext, entry: AuditEntry, names: HistoryNames) -> Details:
    """The changes, details, reference and raw record of an entry."""
    described = change_sentences.list_differences(entry, names, at.provider.policy.timezone)
    members = dict.fromkeys((*entry.before, *entry.after))
    changes = described or [(each, _text_of(entry.before, each), _text_of(entry.after, each)) for each in members]
    facts: list[tuple[Phrase | str, Value]] = [(name, _change(was, becomes)) for name, was, becomes in changes]
    facts.extend(sorted(entry.detail.items()))
    if entry.erased:
        facts.append((phrase("Erased"), phrase("Personal details of this entry were erased.")))
    if find_reference(entry.request_id):
        url = at.path(f"{REFERENCE_PAGE}/{entry.request_id}")
        facts.append((phrase("Reference"), LinkedName(entry.request_id, url)))
    raw = at.path(f"{AUDIT}/{entry.number}")
    facts.append((phrase("Raw record"), Link(url=raw, text=str(entry.number))))
    return Details(about=str(entry.number), facts=tuple(facts))


def _change(was: Sequence[str | Phrase], becomes: Sequence[str | Phrase]) -> Value:
    if not was:
        return Cell(values=tuple(becomes)) if becomes else None
    nothing = (phrase("none"),)
    return phrase("{before} → {after}", before=tuple(was), after=tuple(becomes) or nothing)


async def show_entry(at: ConsoleContext) -> Response:
    """An entry as it is kept, as JSON. Raises NotFound, access.Forbidden."""
    entry = await audit.read_entry(at.registry, int(at.page.rpartition("/")[2]), actor=at.actor)
    if entry is None:
        raise NotFound
    content = msgspec.json.format(msgspec.json.encode(entry), indent=2)
    return Response(content, 200, {**NO_STORE, "X-Content-Type-Options": "nosniff"}, "application/json")


async def query_of(at: ConsoleContext, given: Mapping[str, str], errors: list[FieldError]) -> AuditQuery:
    """The query of some filters, whose errors are added to `errors`."""
    actions: tuple[str, ...] = ()
    since = 0
    try:
        actions = audit_reading.find_actions(given["action"]) if "action" in given else ()
    except audit_reading.InvalidFilter as error:
        errors.append(("action", phrase("{sentence}.", sentence=str(error))))
    try:
        zone = at.provider.policy.timezone
        since = audit_reading.parse_moment(given["since"], now=at.context.now, zone=zone) if "since" in given else 0
    except audit_reading.InvalidFilter as error:
        errors.append(("since", phrase("{sentence}.", sentence=str(error))))
    return AuditQuery(
        user_id=await audit.known_person(at.registry, given["user"]) if "user" in given else "",
        entity_id=given.get("entity", ""),
        client_id=given.get("client", ""),
        actions=actions,
        since=max(since, 0),
    )


def _text_of(side: Mapping[str, object], member: str) -> tuple[str, ...]:
    value = side.get(member)
    if value is None:
        return ()
    return (value if isinstance(value, str) else msgspec.json.encode(value).decode(),)


# --- export: the form records it and leads to the file, so that a form that is sent twice makes one (D73)


async def show_export(at: ConsoleContext) -> View:
    """The form of an export. Raises access.Forbidden."""
    given = at.form or at.query
    return at.build_page(
        phrase("Export the audit"),
        phrase(
            "The file has one JSON object per line: first the range and whether its entries match their "
            "seals, then the entries, the latest first."
        ),
        phrase(
            "It has at most {most} entries; its last line says whether there are more. It holds names and "
            "addresses of people, and the audit records the export.",
            most=audit.EXPORTED_AT_MOST,
        ),
        Form(parts=_fields(given), reason=KEPT_BY_AUDIT, button=phrase("Download")),
        action=at.path(EXPORT),
    )


async def record_export(at: ConsoleContext) -> FormResult:
    """Record the export. Raises InvalidInput, InvalidForm, access.Forbidden."""
    given = {name: value for name in (*FILTERS, _UNTIL) if (value := at.form.get(name, "").strip())}
    errors: list[FieldError] = []
    query = await query_of(at, given, errors)
    until = _read_end(at, given, errors) or int(at.context.now)
    if not errors and until < query.since:
        errors.append((_UNTIL, phrase("The end is before the beginning.")))
    if errors:
        raise InvalidForm(*errors)
    filters = {**given, "user": query.user_id} if "user" in given else given
    wanted = audit.ExportQuery(query=query, until=until, at=at.context.now, filters=filters)
    await audit.record_export(at.registry, at.actor_with_reason(), wanted)
    name = at.provider.new_id()
    await encrypted_values.save_form(
        at.context, _place(at, name), StoredForm(fields={_WANTED: msgspec.json.encode(wanted).decode()})
    )
    return FormResult("", f"{_FILE}?{urlencode({_NAME: name})}")


def _place(at: ConsoleContext, name: str) -> tuple[str, ...]:
    """The place of a recorded export, where no other form is kept."""
    return ("audit export", at.visit.form, name)


async def download_export(at: ConsoleContext) -> Response:
    """The file of a recorded export, for ten minutes. Raises SeeOther, access.Forbidden."""
    kept = await encrypted_values.read_form(at.context, _place(at, at.query.get(_NAME, "")))
    if kept is None:
        raise SeeOther(EXPORT)
    wanted = msgspec.json.decode(kept.fields[_WANTED], type=audit.ExportQuery)
    lines = await audit.export_entries(at.registry, at.actor, wanted)
    headers = {**NO_STORE, "Content-Disposition": f'attachment; filename="audit-{at.context.today}.jsonl"'}
    return StreamingResponse(lines, 200, headers, "application/jsonl")


def _read_end(at: ConsoleContext, given: Mapping[str, str], errors: list[FieldError]) -> int:
    """The moment until which entries are asked for.

    Of a day its last second. 0 if none is given. Errors are added to `errors`.
    """
    text = given.get(_UNTIL, "")
    if not text:
        return 0
    try:
        found = audit_reading.parse_moment(text, now=at.context.now, zone=at.provider.policy.timezone)
    except audit_reading.InvalidFilter as error:
        errors.append((_UNTIL, phrase("{sentence}.", sentence=str(error))))
        return 0
    try:
        date.fromisoformat(text)
    except ValueError:
        return found
    return found + DAY - 1


_EXPORTING: Final = ("read", "audit export")
SECTION: Final = Section[ConsoleContext](
    name=AUDIT,
    pages={
        AUDIT: ConsolePage(view=show_audit),
        EXPORT: ConsolePage(view=show_export, submit=record_export, fresh=True, needs=_EXPORTING),
        _FILE: ConsolePage(view=download_export, needs=_EXPORTING),
    },
    named_pages={_ENTRY: ConsolePage(view=show_entry)},
    fields=frozenset({*FILTERS, _UNTIL, REASON}),
    filters=frozenset({*FILTERS, _UNTIL, "before", "after"}),
)
