"""The append-only audit table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.adapters.sql.codecs import record_codec
from corpid.adapters.sql.kinds import columns
from corpid.adapters.sql.statements import insert, parameters
from corpid.adapters.sql.tables import audit
from corpid.ports import AuditEntry, AuditEvent

if TYPE_CHECKING:
    from corpid.adapters.sql.statements import Database
    from corpid.ports import Clock

WRITING_LOCK: Final = 0x436F72704945
"""the number of the lock that a trigger (migration 0005) makes every writer share until its transaction ends"""
_EVENTS: Final = record_codec(AuditEvent)
_ENTRIES: Final = record_codec(AuditEntry)


class SqlAudit:
    """A ports.Audit. `write` joins the transaction of the change it tells of."""

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
            .where(audit.c.actor == sa.bindparam("actor"), audit.c.action == sa.literal_column("'sign_in.complete'"))
            .order_by(audit.c.number.desc())
            .limit(sa.bindparam("limit", type_=sa.Integer))
        )

    async def write(self, event: AuditEvent, *, now: float) -> None:
        """See ports.Audit."""
        await self._database.write(self._insert, _EVENTS.encode(event) | {"at": int(now)})

    async def record(self, event: AuditEvent) -> None:
        """Write an event of a change that is being made, at the clock's time."""
        await self.write(event, now=self._clock())

    async def entries(self, *, after: int = 0, limit: int = 100) -> list[AuditEntry]:
        """See ports.Audit. Numbers are taken before the end of a transaction: who holds a lower one than the last
        that is visible is waited for, so that whoever reads on from a number misses nothing."""
        row = await self._database.row(self._last, {})
        if row is None or row[0] is None:
            return []
        await self._database.outlive_writers(WRITING_LOCK)
        rows = await self._database.rows(self._entries, {"after": after, "last": row[0], "limit": limit})
        return [_ENTRIES.decode(row) for row in rows]

    async def sign_ins_of(self, user_id: str, *, limit: int) -> list[AuditEntry]:
        """See ports.Audit."""
        rows = await self._database.rows(self._sign_ins, {"actor": f"user:{user_id}", "limit": limit})
        return [_ENTRIES.decode(row) for row in rows]
