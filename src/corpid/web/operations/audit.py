"""The audit in the console: entries by filter, and verification (D57, D58)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import urlencode

import msgspec

from corpid.flows.operations import audit as flow
from corpid.flows.operations import audit_seals
from corpid.flows.operations.console import is_allowed
from corpid.rules.audit_records import AuditQuery
from corpid.rules.directory import audit_reading
from corpid.texts import Phrase, phrase
from corpid.web.operations.page_context import AT_ONCE, ConsoleContext, ConsolePage, console_path, frame
from corpid.web.pages.layout import Link, Pager, PageView, ViewPart, pager_of
from corpid.web.sites import Section

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from corpid.rules.audit_records import AuditEntry
    from corpid.web.pages.layout import FieldError
    from corpid.web.pages.views import View

AUDIT: Final = "audit"
_VERIFY: Final = "verify-audit"
EXPORT: Final = "export-audit"
FILTERS: Final = ("user", "entity", "client", "action", "since")


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


async def audit(at: ConsoleContext) -> View:
    """Entries that fit the filters, the latest first. Raises access.Forbidden."""
    registry = at.context.provider.registry
    given = {name: value.strip() for name in FILTERS if (value := at.query.get(name, "")).strip()}
    errors: list[FieldError] = []
    before = at.query.get("before", "")
    query = msgspec.structs.replace(
        await query_of(at, given, errors),
        before=int(before) if before.isascii() and before.isdigit() and len(before) < _DIGITS else 0,
    )
    here = console_path(at.web, AUDIT)
    if errors:
        found, names, following = [], {}, 0
        # Rights are asked for what cannot be read, too.
        await flow.read_part(
            registry, msgspec.structs.replace(query, since=int(at.context.now)), limit=1, actor=at.actor
        )
    else:
        part = await flow.read_part(registry, query, limit=AT_ONCE, actor=at.actor)
        found, following = part.entries, part.before
        names = await flow.read_names(registry, found)
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
        zone = at.context.provider.policy.timezone
        since = audit_reading.parse_moment(given["since"], now=at.context.now, zone=zone) if "since" in given else 0
    except audit_reading.InvalidFilter as error:
        errors.append(("since", phrase("{sentence}.", sentence=str(error))))
    registry = at.context.provider.registry
    return AuditQuery(
        user_id=await flow.known_person(registry, given["user"]) if "user" in given else "",
        entity_id=given.get("entity", ""),
        client_id=given.get("client", ""),
        actions=actions,
        since=max(since, 0),
    )


_DIGITS: Final = 19
"""of the number of an entry"""


def _line(at: ConsoleContext, entry: AuditEntry, names: dict[str, str]) -> EntryLine:
    members = dict.fromkeys((*entry.before, *entry.after))
    return EntryLine(
        number=entry.number,
        at=at.moment(entry.at),
        actor=_named(entry.actor, names),
        action=entry.action,
        object="/".join(names.get(part, part) for part in entry.object.split("/")),
        where=", ".join(filter(None, (entry.entity_id, entry.other_entity_id, entry.client_id))),
        refused=entry.outcome == "refused",
        details=tuple((name, value) for name, value in sorted(entry.detail.items())),
        changes=tuple(
            (name, _text(entry.before.get(name)), _text(entry.after.get(name)))
            for name in members
            if entry.before.get(name) != entry.after.get(name)
        ),
    )


def _named(actor: str, names: dict[str, str]) -> str:
    kind, colon, name = actor.partition(":")
    return f"{kind}{colon}{names.get(name, name)}"


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


async def verify(at: ConsoleContext) -> View:
    """Compare a part of the audit with its seals. Raises access.Forbidden."""
    after = at.query.get("after", "")
    found = await audit_seals.verify(
        at.context.provider.registry,
        at.actor,
        now=at.context.now,
        after=int(after) if after.isascii() and after.isdigit() and len(after) < _DIGITS else 0,
        most=audit_seals.VERIFIED_AT_ONCE,
    )
    here = console_path(at.web, _VERIFY)
    return Verification(
        frame=frame(at, section=AUDIT, up=Link(url=console_path(at.web, AUDIT), text=Audit.heading)),
        findings=tuple(each.text for each in found.findings),
        seals=found.seals,
        entries=found.entries,
        unsealed=found.unsealed,
        sealed_at=at.moment(found.sealed_at) if found.sealed_at else None,
        more=f"{here}?after={found.next}" if found.next else "",
    )


SECTION: Final = Section[ConsoleContext](
    pages={AUDIT: ConsolePage(view=audit), _VERIFY: ConsolePage(view=verify)},
    filters=frozenset({*FILTERS, "before", "after"}),
)
