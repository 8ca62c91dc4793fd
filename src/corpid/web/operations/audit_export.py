"""Export of the audit in the console, as a file (D53, D57, D58).

The form records the export and leads to the file, so that a form that is sent twice makes one (D73).
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import urlencode

import msgspec
from starlette.responses import StreamingResponse

from corpid.flows import encrypted_values
from corpid.flows.encrypted_values import StoredForm
from corpid.flows.operations import audit as flow
from corpid.rules.directory import audit_reading
from corpid.rules.limits import DAY
from corpid.texts import Phrase, phrase
from corpid.web.operations.audit import AUDIT, EXPORT, FILTERS, Audit, query_of
from corpid.web.operations.page_context import ConsoleContext, ConsolePage, console_path, frame
from corpid.web.operations.reasons import REASON, acting
from corpid.web.pages.layout import FormView, Link
from corpid.web.pages.responses import NO_STORE
from corpid.web.sites import FormResult, InvalidForm, Section, SeeOther

if TYPE_CHECKING:
    from starlette.responses import Response

    from corpid.web.pages.layout import FieldError
    from corpid.web.pages.views import View

_UNTIL: Final = "until"
_FILE: Final = f"{EXPORT}/file"
_NAME: Final = "name"
"""the parameter that names a recorded export"""
_WANTED: Final = "wanted"


class ExportAudit(FormView, frozen=True, kw_only=True):
    """The range and the filters of an export. Fields: FILTERS, until, reason."""

    template: ClassVar[str] = "console/export_audit.html"
    heading: ClassVar[Phrase] = phrase("Export the audit")

    given: dict[str, str]
    most: int = flow.EXPORTED_AT_MOST
    reason: str
    back: str
    notes: tuple[Phrase, ...] = ()


async def ask(at: ConsoleContext) -> View:
    """The form."""
    back = console_path(at.web, AUDIT)
    given = at.form or at.query
    return ExportAudit(
        frame=frame(at, section=AUDIT, up=Link(url=back, text=Audit.heading)),
        action=console_path(at.web, EXPORT),
        given={name: given.get(name, "") for name in (*FILTERS, _UNTIL)},
        reason=at.form.get(REASON, ""),
        back=back,
        notes=at.notes,
        errors=at.errors,
    )


async def record(at: ConsoleContext) -> FormResult:
    """Record the export. Raises InvalidInput, InvalidForm, access.Forbidden."""
    given = {name: value for name in (*FILTERS, _UNTIL) if (value := at.form.get(name, "").strip())}
    errors: list[FieldError] = []
    query = await query_of(at, given, errors)
    until = int(at.context.now)
    if _UNTIL in given:
        try:
            until = _end(at, given[_UNTIL])
        except audit_reading.InvalidFilter as error:
            errors.append((_UNTIL, phrase("{sentence}.", sentence=str(error))))
    if not errors and until < query.since:
        errors.append((_UNTIL, phrase("The end is before the beginning.")))
    if errors:
        raise InvalidForm(*errors)
    filters = {**given, "user": query.user_id} if "user" in given else given
    wanted = flow.ExportQuery(query=query, until=until, at=at.context.now, filters=filters)
    await flow.record_export(at.context.provider.registry, acting(at), wanted)
    name = at.context.provider.new_id()
    await encrypted_values.save_form(
        at.context, _place(at, name), StoredForm(fields={_WANTED: msgspec.json.encode(wanted).decode()})
    )
    return FormResult("", f"{_FILE}?{urlencode({_NAME: name})}")


def _place(at: ConsoleContext, name: str) -> tuple[str, ...]:
    """The place of a recorded export, where no other form is kept."""
    return ("audit export", at.visit.form, name)


async def download(at: ConsoleContext) -> Response:
    """The file of a recorded export, for ten minutes. Raises SeeOther, access.Forbidden."""
    kept = await encrypted_values.read_form(at.context, _place(at, at.query.get(_NAME, "")))
    if kept is None:
        raise SeeOther(EXPORT)
    wanted = msgspec.json.decode(kept.fields[_WANTED], type=flow.ExportQuery)
    lines = await flow.export_entries(at.context.provider.registry, at.actor, wanted)
    headers = {**NO_STORE, "Content-Disposition": f'attachment; filename="audit-{at.context.today}.jsonl"'}
    return StreamingResponse(lines, 200, headers, "application/jsonl")


def _end(at: ConsoleContext, text: str) -> int:
    """The moment; of a day its last second."""
    found = audit_reading.parse_moment(text, now=at.context.now, zone=at.context.provider.policy.timezone)
    try:
        date.fromisoformat(text)
    except ValueError:
        return found
    return found + DAY - 1


SECTION: Final = Section[ConsoleContext](
    pages={
        EXPORT: ConsolePage(view=ask, submit=record, fresh=True, needs=("read", "audit export")),
        _FILE: ConsolePage(view=download, needs=("read", "audit export")),
    },
    fields=frozenset({*FILTERS, _UNTIL, REASON}),
)
