"""The audit in the console: entries by filter, verification, export (D53, D57, D58)."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import urlencode

import msgspec
from starlette.responses import StreamingResponse

from corpid.flows import encrypted_values
from corpid.flows.encrypted_values import StoredForm
from corpid.flows.operations import audit, audit_seals
from corpid.flows.operations.console import is_allowed
from corpid.rules.audit_records import AuditQuery
from corpid.rules.directory import audit_reading
from corpid.rules.limits import DAY
from corpid.texts import Phrase, phrase
from corpid.web.operations.page_context import (
    AT_ONCE,
    REASON,
    ConsoleContext,
    ConsolePage,
    actor_with_reason,
    console_path,
    frame,
    section_link,
)
from corpid.web.pages.layout import FormView, Link, Pager, PageView, ViewPart, pager_of
from corpid.web.pages.responses import NO_STORE
from corpid.web.sites import FormResult, InvalidForm, Section, SeeOther, read_number

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from starlette.responses import Response

    from corpid.rules.audit_records import AuditEntry
    from corpid.web.pages.layout import FieldError
    from corpid.web.pages.views import View

AUDIT: Final = "audit"
_VERIFY: Final = "verify-audit"
EXPORT: Final = "export-audit"
FILTERS: Final = ("user", "entity", "client", "action", "since")
_UNTIL: Final = "until"
_FILE: Final = f"{EXPORT}/file"
_NAME: Final = "name"
"""the parameter that names a recorded export"""
_WANTED: Final = "wanted"


class EntryLine(ViewPart, frozen=True, kw_only=True):
    number: int
    at: datetime
    actor: str
    action: str
    object: str
    where: str
    """entity and client, if any"""
    refused: bool
    details: tuple[tuple[str, str], ...]
    changes: tuple[tuple[str, str, str], ...]
    """member, before and after"""


class Audit(PageView, frozen=True, kw_only=True):
    """The audit, the latest entries first. Fields of the search: FILTERS."""

    template: ClassVar[str] = "console/audit.html"
    heading: ClassVar[Phrase] = phrase("Audit")

    action: str
    given: dict[str, str]
    entries: tuple[EntryLine, ...]
    pager: Pager
    verify: str
    export: str
    """of the form that exports what is shown; empty for those who may not"""


class Verification(PageView, frozen=True, kw_only=True):
    """A comparison of the audit with its seals."""

    template: ClassVar[str] = "console/verify_audit.html"
    heading: ClassVar[Phrase] = phrase("The audit and its seals")

    findings: tuple[str, ...]
    seals: int
    entries: int
    unsealed: int
    sealed_at: datetime | None
    more: str
    """the page that goes on; empty at the end"""


class ExportAudit(FormView, frozen=True, kw_only=True):
    """The range and the filters of an export. Fields: FILTERS, until, reason."""

    template: ClassVar[str] = "console/export_audit.html"
    heading: ClassVar[Phrase] = phrase("Export the audit")

    given: dict[str, str]
    most: int = audit.EXPORTED_AT_MOST


async def show_audit(at: ConsoleContext) -> View:
    """Entries that fit the filters, the latest first. Raises access.Forbidden."""
    given = {name: value.strip() for name in FILTERS if (value := at.query.get(name, "")).strip()}
    errors: list[FieldError] = []
    before = at.query.get("before", "")
    query = msgspec.structs.replace(await query_of(at, given, errors), before=read_number(before))
    here = console_path(at.web, AUDIT)
    if errors:
        found, names, following = [], {}, 0
        # Rights are asked for what cannot be read, too.
        await audit.read_part(
            at.registry, msgspec.structs.replace(query, since=int(at.context.now)), limit=1, actor=at.actor
        )
    else:
        part = await audit.read_part(at.registry, query, limit=AT_ONCE, actor=at.actor)
        found, following = part.entries, part.before
        names = await audit.read_names(at.registry, found, actor=at.actor)
    return Audit(
        frame=frame(at, section=AUDIT),
        action=here,
        given={name: given.get(name, "") for name in FILTERS},
        entries=tuple(_line(at, each, names) for each in found),
        pager=pager_of(here, given, came=bool(before), after=following, name="before"),
        verify=console_path(at.web, _VERIFY),
        export=f"{console_path(at.web, EXPORT)}{f'?{urlencode(given)}' if given else ''}"
        if is_allowed(at.actor, "read", "audit export")
        else "",
        errors=tuple(errors),
    )


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


def _line(at: ConsoleContext, entry: AuditEntry, names: dict[str, str]) -> EntryLine:
    members = dict.fromkeys((*entry.before, *entry.after))
    return EntryLine(
        number=entry.number,
        at=at.moment(entry.at),
        actor=_name_actor(entry.actor, names),
        action=entry.action,
        object="/".join(names.get(part, part) for part in entry.object.split("/")),
        where=", ".join(filter(None, (entry.entity_id, entry.other_entity_id, entry.client_id))),
        refused=entry.outcome == "refused",
        details=tuple((name, value) for name, value in sorted(entry.detail.items())),
        changes=tuple(
            (name, _text_of(entry.before.get(name)), _text_of(entry.after.get(name)))
            for name in members
            if entry.before.get(name) != entry.after.get(name)
        ),
    )


def _name_actor(actor: str, names: dict[str, str]) -> str:
    kind, colon, name = actor.partition(":")
    return f"{kind}{colon}{names.get(name, name)}"


def _text_of(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


async def show_verification(at: ConsoleContext) -> View:
    """Compare a part of the audit with its seals. Raises access.Forbidden."""
    after = at.query.get("after", "")
    found = await audit_seals.verify(
        at.registry, at.actor, now=at.context.now, after=read_number(after), most=audit_seals.VERIFIED_AT_ONCE
    )
    here = console_path(at.web, _VERIFY)
    return Verification(
        frame=frame(at, section=AUDIT, up=section_link(at, AUDIT)),
        findings=tuple(each.text for each in found.findings),
        seals=found.seals,
        entries=found.entries,
        unsealed=found.unsealed,
        sealed_at=at.moment(found.sealed_at) if found.sealed_at else None,
        more=f"{here}?after={found.next}" if found.next else "",
    )


# --- export: the form records it and leads to the file, so that a form that is sent twice makes one (D73)


async def show_export(at: ConsoleContext) -> View:
    """The form."""
    back = console_path(at.web, AUDIT)
    given = at.form or at.query
    return ExportAudit(
        frame=frame(at, section=AUDIT, up=Link(url=back, text=Audit.heading)),
        action=console_path(at.web, EXPORT),
        given={name: given.get(name, "") for name in (*FILTERS, _UNTIL)},
        back=back,
    )


async def record_export(at: ConsoleContext) -> FormResult:
    """Record the export. Raises InvalidInput, InvalidForm, access.Forbidden."""
    given = {name: value for name in (*FILTERS, _UNTIL) if (value := at.form.get(name, "").strip())}
    errors: list[FieldError] = []
    query = await query_of(at, given, errors)
    until = int(at.context.now)
    if _UNTIL in given:
        try:
            until = _parse_end(at, given[_UNTIL])
        except audit_reading.InvalidFilter as error:
            errors.append((_UNTIL, phrase("{sentence}.", sentence=str(error))))
    if not errors and until < query.since:
        errors.append((_UNTIL, phrase("The end is before the beginning.")))
    if errors:
        raise InvalidForm(*errors)
    filters = {**given, "user": query.user_id} if "user" in given else given
    wanted = audit.ExportQuery(query=query, until=until, at=at.context.now, filters=filters)
    await audit.record_export(at.registry, actor_with_reason(at), wanted)
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


def _parse_end(at: ConsoleContext, text: str) -> int:
    """The moment; of a day its last second."""
    found = audit_reading.parse_moment(text, now=at.context.now, zone=at.provider.policy.timezone)
    try:
        date.fromisoformat(text)
    except ValueError:
        return found
    return found + DAY - 1


_EXPORTING: Final = ("read", "audit export")
SECTION: Final = Section[ConsoleContext](
    pages={
        AUDIT: ConsolePage(view=show_audit),
        _VERIFY: ConsolePage(view=show_verification),
        EXPORT: ConsolePage(view=show_export, submit=record_export, fresh=True, needs=_EXPORTING),
        _FILE: ConsolePage(view=download_export, needs=_EXPORTING),
    },
    fields=frozenset({*FILTERS, _UNTIL, REASON}),
    filters=frozenset({*FILTERS, "before", "after"}),
)
