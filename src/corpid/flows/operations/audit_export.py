"""Export of audit entries of a time range, for an operator's browser (D53, D57, D58)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows.directory.write import audit_event
from corpid.flows.operations import audit, audit_seals
from corpid.rules.audit_actions import AuditAction
from corpid.rules.audit_records import AuditQuery
from corpid.rules.directory.access import Object, authorise
from corpid.rules.limits import CLOCKS_APART_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from corpid.flows.operations.audit_seals import SealVerification
    from corpid.rules.directory.actors import DeploymentOperator
    from corpid.stores.sql.registry import Registry

MOST: Final = 100_000
"""entries of one file"""
_AT_ONCE: Final = 500


class ExportQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The entries that are exported: those that fit `query`, until a moment."""

    query: AuditQuery
    until: int
    """epoch seconds"""
    at: float
    """when they were asked for"""
    filters: dict[str, str]
    """time range and filters as they were typed, for the record"""


async def record(registry: Registry, actor: DeploymentOperator, wanted: ExportQuery) -> None:
    """Record an export, before it is made. Raises access.Forbidden, StoreUnavailable. Source: D53, D57"""
    authorise(actor, "read", Object(kind="audit export"))
    event = audit_event(actor, AuditAction.AUDIT_EXPORT, "", filters=_filters(wanted))
    await registry.audit.write(event, now=wanted.at)


async def export(registry: Registry, actor: DeploymentOperator, wanted: ExportQuery) -> AsyncIterator[bytes]:
    """Return a recorded export as JSON lines.

    The first line has the range, the filters and the result of comparing its entries with their seals; then come the
    entries, the latest first; the last line has their number, and where the next export goes on if there are more than
    MOST. Memory holds some hundred entries. Raises access.Forbidden, StoreUnavailable. Source: D53, D57, D58
    """
    authorise(actor, "read", Object(kind="audit export"))
    verified, is_partial = await _verified(registry, actor, wanted)
    first = {
        "export": "corpid audit entries",
        "version": 1,
        "at": int(wanted.at),
        "filters": wanted.filters,
        "verification": {
            "found": verified.found,
            "findings": [each.text for each in verified.findings],
            "seals": verified.seals,
            "entries": verified.entries,
            "sealed_to": verified.sealed_to,
            "partial": is_partial,
        },
    }
    return _lines(registry, actor, wanted, first)


async def _lines(
    registry: Registry, actor: DeploymentOperator, wanted: ExportQuery, first: dict[str, Any]
) -> AsyncIterator[bytes]:
    yield _line(first)
    count, before = 0, await _first_after(registry, wanted.until)
    while count < MOST:
        query = msgspec.structs.replace(wanted.query, before=before)
        part = await audit.part(registry, query, limit=min(_AT_ONCE, MOST - count), actor=actor)
        fitting = [entry for entry in part.entries if entry.at <= wanted.until]
        yield b"".join(_line({"entry": msgspec.structs.asdict(entry)}) for entry in fitting)
        count, before = count + len(fitting), part.before
        if not before:
            break
        await asyncio.sleep(0)
    yield _line({"end": count, "next": before or None})


def _filters(wanted: ExportQuery) -> str:
    return "; ".join(f"{name} {value}" for name, value in wanted.filters.items()) or "none"


def _line(value: dict[str, Any]) -> bytes:
    return msgspec.json.encode(value) + b"\n"


async def _first_after(registry: Registry, until: int) -> int:
    """The number before which entries are not later than a moment."""

    async def at(number: int) -> float | None:
        found = await registry.audit.entries(after=number, limit=1)
        return found[0].at if found else None

    return await _search(at, until + CLOCKS_APART_SECONDS) + 1


async def _verified(
    registry: Registry, actor: DeploymentOperator, wanted: ExportQuery
) -> tuple[SealVerification, bool]:
    """The comparison with the range's seals, and whether it is partial."""

    async def at(number: int) -> float | None:
        found = await registry.seals.page(after=number, limit=1)
        return found[0].at if found else None

    # A seal is made after its entries: the one that covers the last moment may be the first after it.
    after = await _search(at, wanted.query.since - 1) if wanted.query.since else 0
    last = await _search(at, wanted.until) + 1
    most = max(min(last - after, audit_seals.VERIFIED_AT_ONCE), 1)
    return await audit_seals.verify(
        registry, actor, now=wanted.at, after=after, most=most
    ), last - after > audit_seals.VERIFIED_AT_ONCE


async def _search(at: Callable[[int], Awaitable[float | None]], moment: float) -> int:
    """The lowest number after which every row is later.

    Rows are numbered in the order of time. Some dozens of reads.
    """
    high = 1
    while (found := await at(high)) is not None and found <= moment:
        high *= 2
    low = 0
    while low < high:
        middle = (low + high) // 2
        found = await at(middle)
        if found is not None and found <= moment:
            low = middle + 1
        else:
            high = middle
    return low
