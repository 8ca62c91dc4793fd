"""The append-only audit table, and its pruning (docs/decisions/0008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import ClauseElement, Executable

from corpid.ports import AuditEntry, AuditEvent
from corpid.rules.audit_actions import AuditAction
from corpid.stores.sql.mappers import columns, record_codec
from corpid.stores.sql.statements import insert, parameters
from corpid.stores.sql.tables import audit

if TYPE_CHECKING:
    from corpid.ports import Clock
    from corpid.stores.sql.statements import Database, Prepared

WRITING_LOCK: Final = 0x436F72704945
"""the number of the lock that a trigger (migration 0005) makes every writer share until its transaction ends"""
_EVENTS: Final = record_codec(AuditEvent)
_ENTRIES: Final = record_codec(AuditEntry)


class SqlAudit:
    """The audit log. `write` joins the transaction of the recorded change."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database: Final = database
        self._clock: Final = clock
        self._insert: Final = database.prepare(insert(audit).values(parameters((*_EVENTS.written, "at"))).inline())
        self._last: Final = database.prepare(sa.select(sa.func.max(audit.c.number)))
        self._entries: Final = database.prepare(
            sa.select(*columns(audit, _ENTRIES))
            .where(audit.c.number > sa.bindparam("after"), audit.c.number <= sa.bindparam("last"))
            .order_by(audit.c.number)
            .limit(sa.bindparam("limit", type_=sa.Integer))
        )

        self._sign_ins: Final = database.prepare(
            sa.select(*columns(audit, _ENTRIES))
            .where(
                audit.c.actor == sa.bindparam("actor"),
                audit.c.action == sa.literal_column(f"'{AuditAction.SIGN_IN_COMPLETE}'"),
            )
            .order_by(audit.c.number.desc())
            .limit(sa.bindparam("limit", type_=sa.Integer))
        )

    async def write(self, event: AuditEvent, *, now: float) -> None:
        await self._database.write(self._insert, _EVENTS.encode(event) | {"action": str(event.action), "at": int(now)})

    async def record(self, event: AuditEvent) -> None:
        """Write the event of a change in progress, at the clock's time."""
        await self.write(event, now=self._clock())

    async def entries(self, *, after: int = 0, limit: int = 100) -> list[AuditEntry]:
        """Entries after a number, without gaps.

        Numbers are taken before the end of a transaction. So an open transaction with a lower number than the last
        visible one is waited for, and a reader who continues from a number misses nothing.
        """
        row = await self._database.row(self._last, {})
        if row is None or row[0] is None:
            return []
        await self._database.outlive_writers(WRITING_LOCK)
        rows = await self._database.rows(self._entries, {"after": after, "last": row[0], "limit": limit})
        return [_ENTRIES.decode(row) for row in rows]

    async def sign_ins_of(self, user_id: str, *, limit: int) -> list[AuditEntry]:
        rows = await self._database.rows(self._sign_ins, {"actor": f"user:{user_id}", "limit": limit})
        return [_ENTRIES.decode(row) for row in rows]


DAY_SECONDS: Final = 86_400
SIGN_IN: Final = "sign_in."
"""how the actions of a sign-in begin"""
_ROWS: Final = 500
"""rows that are looked at, and at most removed, in one transaction"""


class _Guard(Executable, ClauseElement):
    """Lifts the rule that rows stay, or sets it again.

    In both engines part of the transaction.
    """

    inherit_cache = False

    def __init__(self, *, up: bool) -> None:
        self.up = up


@compiles(_Guard, "sqlite")
def _sqlite(guard: _Guard, _compiler: Any, **_: Any) -> str:  # noqa: ANN401
    return (
        "CREATE TRIGGER audit_refuses_DELETE BEFORE DELETE ON audit\n"
        "BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END"
        if guard.up
        else "DROP TRIGGER audit_refuses_DELETE"
    )


@compiles(_Guard, "postgresql")
def _postgresql(guard: _Guard, _compiler: Any, **_: Any) -> str:  # noqa: ANN401
    return f"ALTER TABLE audit {'ENABLE' if guard.up else 'DISABLE'} TRIGGER audit_refuses"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statements:
    """Prepared statements for one range of the table."""

    look: Prepared
    """its last number, its oldest moment, and how many of its rows are to go"""
    remove: Prepared
    lift: Prepared
    guard: Prepared


async def prune(
    database: Database, table: SqlAudit, event: AuditEvent, *, now: float, audit_days: int, sign_in_days: int
) -> int:
    """Remove audit entries older than `audit_days`, those of sign-ins after `sign_in_days`.

    How many went.

    0 keeps them for ever. Short transactions, one per stretch of the table, each of which lifts the rule
    that rows stay and sets it again. The event is written if something went, with their number in its detail.
    Raises StoreUnavailable; what was removed by then stays removed. Source: docs/decisions/0008
    """
    limits = {"others": _limit(now, audit_days), "sign_ins": _limit(now, sign_in_days)}
    statements = _prepared(database)
    removed, after = 0, 0
    while True:
        row = await database.row(statements.look, {"after": after, "limit": _ROWS, **limits})
        end, oldest, old = row or (None, 0, 0)
        if end is None or oldest >= max(limits.values()):
            break
        if old:
            removed += await _remove(database, statements, {"after": after, "end": int(end), **limits})
        after = int(end)
    if removed:
        counted = msgspec.structs.replace(event, detail={**event.detail, "removed": str(removed)})
        await table.write(counted, now=now)
    return removed


async def _remove(database: Database, statements: _Statements, values: dict[str, int]) -> int:
    async with database.transaction():
        await database.row(statements.lift, {})
        removed = await database.run(statements.remove, values)
        await database.row(statements.guard, {})
    return removed


def _limit(now: float, days: int) -> int:
    return int(now) - days * DAY_SECONDS if days else 0


def _prepared(database: Database) -> _Statements:
    after, end = (sa.bindparam(name, type_=sa.BigInteger) for name in ("after", "end"))
    chunk = (
        sa.select(audit.c.number, audit.c.at, audit.c.action)
        .where(audit.c.number > after)
        .order_by(audit.c.number)
        .limit(sa.bindparam("limit", type_=sa.Integer))
        .subquery()
    )
    old = sa.func.coalesce(sa.func.sum(sa.case((_is_old(chunk), 1), else_=0)), 0)
    return _Statements(
        look=database.prepare(sa.select(sa.func.max(chunk.c.number), sa.func.min(chunk.c.at), old)),
        remove=database.prepare(sa.delete(audit).where(audit.c.number > after, audit.c.number <= end, _is_old(audit))),
        lift=database.prepare(_Guard(up=False)),
        guard=database.prepare(_Guard(up=True)),
    )


def _is_old(rows: sa.FromClause) -> sa.ColumnElement[bool]:
    others, sign_ins = (sa.bindparam(name, type_=sa.BigInteger) for name in ("others", "sign_ins"))
    of_sign_in = rows.c.action.startswith(SIGN_IN, autoescape=True)
    return sa.or_(sa.and_(of_sign_in, rows.c.at < sign_ins), sa.and_(sa.not_(of_sign_in), rows.c.at < others))
