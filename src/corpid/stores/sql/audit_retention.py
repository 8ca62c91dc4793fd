"""Removal of old audit entries, erasure of details (docs/decisions/0008, 0015)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import sqlalchemy as sa
from msgspec.structs import asdict
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import ClauseElement, Executable

from corpid.rules.audit import AuditAction, AuditEvent, AuditQuery
from corpid.rules.audit_seals import DAY_SECONDS, SIGN_IN
from corpid.rules.directory.approvals import ApprovalState
from corpid.stores.sql.audit import AFTER_EVERY_NUMBER, AuditedPart, values_of, ways
from corpid.stores.sql.columns import LIMIT, integer_parameter, text_parameter
from corpid.stores.sql.statements import Database, Statement
from corpid.stores.sql.tables import audit, audit_details, audit_digests, audit_seals, change_requests

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


_ROWS: Final = 500
"""rows checked, and at most removed, in one transaction"""


class _Guard(Executable, ClauseElement):
    """Lifts the rule that a table's rows stay, or sets it again.

    In both engines part of the transaction.
    """

    inherit_cache = False

    def __init__(self, table: sa.Table, *, up: bool) -> None:
        self.table = table.name
        self.up = up


@compiles(_Guard, "sqlite")
def _sqlite(guard: _Guard, _compiler: Any, **_: Any) -> str:  # noqa: ANN401
    return (
        f"CREATE TRIGGER {guard.table}_refuses_DELETE BEFORE DELETE ON {guard.table}\n"
        "BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END"
        if guard.up
        else f"DROP TRIGGER {guard.table}_refuses_DELETE"
    )


@compiles(_Guard, "postgresql")
def _postgresql(guard: _Guard, _compiler: Any, **_: Any) -> str:  # noqa: ANN401
    return f"ALTER TABLE {guard.table} {'ENABLE' if guard.up else 'DISABLE'} TRIGGER {guard.table}_refuses"


class _Removal:
    """A removal of rows, under the lifted rule of their table.

    Never of both tables in one: writers take them in an order of their own, and would wait for each other.
    """

    def __init__(self, database: Database, table: sa.Table, *conditions: sa.ColumnElement[bool]) -> None:
        self._database: Final = database
        self._lift: Final = Statement(_Guard(table, up=False))
        self._remove: Final = Statement(sa.delete(table).where(*conditions))
        self._guard: Final = Statement(_Guard(table, up=True))

    async def run(self, values: dict[str, Any]) -> int:
        """The number of rows that went."""
        async with self._database.transaction():
            await self._database.row(self._lift, {})
            removed = await self._database.run(self._remove, values)
            await self._database.row(self._guard, {})
        return removed


class RetentionPeriods(msgspec.Struct, frozen=True, kw_only=True):
    """Days that entries are kept; 0: for ever."""

    audit_days: int = 0
    sign_in_days: int = 0
    """of the entries of sign-ins"""
    audit_detail_days: int = 0
    """of the details of every entry"""

    @property
    def least(self) -> int:
        """The fewest days after which something goes; 0: nothing does."""
        return min((days for days in (self.audit_days, self.sign_in_days, self.audit_detail_days) if days), default=0)

    def __bool__(self) -> bool:
        return bool(self.audit_days or self.sign_in_days or self.audit_detail_days)


class PruneResult(msgspec.Struct, frozen=True, kw_only=True):
    """The number of removed entries, and of erased details."""

    removed: int
    erased: int
    requests: int = 0
    """decided requests for approval, which stay as long as the audit's entries"""


class _Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """Rows between two numbers, and how many of them are old."""

    after: int
    end: int
    old: int
    with_old_details: int


class AuditRetention(AuditedPart):
    """Removal of old entries, and erasure of details."""

    async def prune(
        self, event: AuditEvent, *, now: float, kept: RetentionPeriods, last: int = AFTER_EVERY_NUMBER
    ) -> PruneResult:
        """Remove audit entries and details that are older than they are kept.

        The event is written first, if there is something to remove, with how much and for how many days entries are kept:
        it explains to a verification where they are, and itself stays for ever. Then short transactions, for one chunk of
        the table after the other, each of which lifts the rule that rows stay and sets it again. Raises StoreUnavailable;
        what was removed by then stays removed. Entries after `last` stay, with their details. Decided requests for approval
        go by the same age. Source: docs/decisions/0008, 0015, 0016, D55
        """
        limits = {
            "others": _limit(now, kept.audit_days),
            "sign_ins": _limit(now, kept.sign_in_days),
            "details": _limit(now, kept.audit_detail_days),
        }
        found = [chunk async for chunk in self._chunks(limits, last)]
        planned = PruneResult(
            removed=sum(chunk.old for chunk in found), erased=sum(chunk.with_old_details for chunk in found)
        )
        if planned.removed or planned.erased:
            days = {name: str(number) for name, number in asdict(kept).items()}
            counts = {"removed": str(planned.removed), "erased": str(planned.erased)}
            await self._audit.write(msgspec.structs.replace(event, detail=event.detail | days | counts), now=now)
        entries = _Removal(self._database, audit, *_STRETCH, _is_old(audit))
        of_old_entry = audit_details.c.number.in_(sa.select(audit.c.number).where(*_STRETCH, _loses_details(audit)))
        details = _Removal(self._database, audit_details, *_STRETCH_OF_DETAILS, of_old_entry)
        removed, erased = 0, 0
        for chunk in found:
            values = {"after": chunk.after, "end": chunk.end, **limits}
            if chunk.with_old_details:
                erased += await details.run(values)
            if chunk.old:
                removed += await entries.run(values)
        if found:
            await self._remove_digests(found[-1].end, limits)
        return PruneResult(removed=removed, erased=erased, requests=await self._remove_requests(limits["others"]))

    async def erase(self, event: AuditEvent, query: AuditQuery, *, now: float) -> int:
        """Erase the details of every entry that fits.

        The rows stay, each with the digest of its details. The event is written first, with the number of details that go:
        it explains to a verification where they are. Raises StoreUnavailable; what was erased by then stays erased.
        Source: D57, docs/decisions/0015
        """
        planned: set[int] = set()
        removals: list[tuple[_Removal, dict[str, Any]]] = []
        asked = values_of(query)
        for way in ways(query):
            found = sa.select(audit.c.number).where(*way.conditions, way.number > _AFTER, way.number <= _END)
            detailed = (
                sa.select(audit.c.number)
                .join(audit_details, audit_details.c.number == audit.c.number)
                .where(*way.conditions, way.number > _AFTER)
                .order_by(way.number)
                .limit(LIMIT)
            )
            look = Statement(detailed)
            removal = _Removal(self._database, audit_details, *_STRETCH_OF_DETAILS, audit_details.c.number.in_(found))
            after = 0
            while numbers := await self._database.rows(look, asked | {"after": after, "limit": _ROWS}):
                end = int(numbers[-1][0])
                planned.update(int(number) for (number,) in numbers)
                removals.append((removal, asked | {"after": after, "end": end}))
                after = end
        counted = msgspec.structs.replace(event, detail={**event.detail, "erased": str(len(planned))})
        await self._audit.write(counted, now=now)
        return sum([await removal.run(values) for removal, values in removals])

    async def _remove_requests(self, limit: int) -> int:
        """Remove requests for approval that were decided before this moment.

        Identifiers begin with the moment of the request, so that younger ones are not looked at.
        """
        row = change_requests.c
        old = (
            sa.select(row.request_id)
            .where(
                row.request_id < text_parameter("end"),
                row.request_id > text_parameter("after"),
                row.state != sa.literal_column(f"'{ApprovalState.PENDING.value}'"),
                row.decided_at < integer_parameter("limit"),
            )
            .order_by(row.request_id)
            .limit(_ROWS)
        )
        look = Statement(old)
        remove = Statement(sa.delete(change_requests).where(row.request_id == sa.bindparam("request_id")))
        values, removed = {"after": "", "end": f"{limit:08x}", "limit": limit}, 0
        while limit and (rows := await self._database.rows(look, values)):
            async with self._database.transaction():
                for (request_id,) in rows:
                    removed += await self._database.run(remove, {"request_id": request_id})
            values["after"] = str(rows[-1][0])
        return removed

    async def _chunks(self, limits: dict[str, int], last: int) -> AsyncIterator[_Chunk]:
        """The chunks in which there may be something old."""
        after = 0
        while True:
            row = await self._database.row(_look, {"after": after, "end": last, "limit": _ROWS, **limits})
            end, oldest, old, with_old_details = row or (None, 0, 0, 0)
            if end is None or oldest >= max(limits.values()):
                return
            yield _Chunk(after=after, end=int(end), old=int(old), with_old_details=int(with_old_details))
            after = int(end)

    async def _remove_digests(self, end: int, limits: dict[str, int]) -> None:
        """Remove the lists of digests of which every entry was removed.

        `end` is the last number that was looked at. The seals stay.
        """
        covered = sa.select(audit_seals.c.number).where(audit_seals.c.last <= _END).order_by(audit_seals.c.last.desc())
        last = await self._database.row(Statement(covered.limit(1)), {"end": end})
        look = Statement(
            sa.select(audit_digests.c.seal)
            .where(audit_digests.c.seal > _AFTER, audit_digests.c.seal <= _END, _is_old_list())
            .order_by(audit_digests.c.seal)
            .limit(LIMIT)
        )
        removal = _Removal(
            self._database, audit_digests, audit_digests.c.seal > _AFTER, audit_digests.c.seal <= _END, _is_old_list()
        )
        values = {"after": 0, "end": 0 if last is None else int(last[0]), "limit": _ROWS, **limits}
        while rows := await self._database.rows(look, values):
            await removal.run(values | {"end": int(rows[-1][0])})
            values["after"] = int(rows[-1][0])


def _limit(now: float, days: int) -> int:
    return int(now) - days * DAY_SECONDS if days else 0


_AFTER: Final = integer_parameter("after")
_END: Final = integer_parameter("end")
_STRETCH: Final = (audit.c.number > _AFTER, audit.c.number <= _END)
_STRETCH_OF_DETAILS: Final = (audit_details.c.number > _AFTER, audit_details.c.number <= _END)


@Statement
def _look() -> sa.Select[Any, Any, int, int]:
    """A chunk: last number, oldest moment, old rows, old details."""
    chunk = (
        sa.select(audit.c.number, audit.c.at, audit.c.action, audit_details.c.number.label("detailed"))
        .select_from(audit.outerjoin(audit_details, audit_details.c.number == audit.c.number))
        .where(*_STRETCH)
        .order_by(audit.c.number)
        .limit(LIMIT)
        .subquery("chunk")
    )

    def count(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
        return sa.func.coalesce(sa.func.sum(sa.case((condition, 1), else_=0)), 0)

    with_old_details = sa.and_(chunk.c.detailed.is_not(None), _loses_details(chunk))
    return sa.select(
        sa.func.max(chunk.c.number), sa.func.min(chunk.c.at), count(_is_old(chunk)), count(with_old_details)
    )


def _is_old(rows: sa.FromClause) -> sa.ColumnElement[bool]:
    others, sign_ins = (integer_parameter(name) for name in ("others", "sign_ins"))
    of_sign_in = rows.c.action.startswith(SIGN_IN, autoescape=True)
    of_others = sa.and_(sa.not_(of_sign_in), rows.c.action != sa.literal_column(f"'{AuditAction.AUDIT_PRUNE}'"))
    return sa.or_(sa.and_(of_sign_in, rows.c.at < sign_ins), sa.and_(of_others, rows.c.at < others))


def _is_old_list() -> sa.ColumnElement[bool]:
    limits = {"sign_in": "sign_ins", "other": "others"}
    return sa.or_(
        *(
            sa.and_(
                audit_digests.c.retention == sa.literal_column(f"'{retention}'"),
                audit_digests.c.latest < integer_parameter(limit),
            )
            for retention, limit in limits.items()
        )
    )


def _loses_details(rows: sa.FromClause) -> sa.ColumnElement[bool]:
    return sa.or_(_is_old(rows), rows.c.at < integer_parameter("details"))
