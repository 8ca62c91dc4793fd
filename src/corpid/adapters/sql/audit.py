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

_EVENTS: Final = record_codec(AuditEvent)
_ENTRIES: Final = record_codec(AuditEntry)


class SqlAudit:
    """A ports.Audit. `write` joins the transaction of the change it tells of."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database: Final = database
        self._clock: Final = clock
        self._insert: Final = database.prepare(insert(audit).values(parameters((*_EVENTS.written, "at"))).inline())
        self._entries: Final = database.prepare(
            sa.select(*columns(audit, _ENTRIES))
            .where(audit.c.number > sa.bindparam("after"))
            .order_by(audit.c.number)
            .limit(sa.bindparam("limit", type_=sa.Integer))
        )

    async def write(self, event: AuditEvent, *, now: float) -> None:
        """See ports.Audit."""
        async with self._database.transaction():
            await self._database.run(self._insert, _EVENTS.encode(event) | {"at": int(now)})

    async def record(self, event: AuditEvent) -> None:
        """Write an event of a change that is being made, at the clock's time."""
        await self.write(event, now=self._clock())

    async def entries(self, *, after: int = 0, limit: int = 100) -> list[AuditEntry]:
        """See ports.Audit."""
        rows = await self._database.rows(self._entries, {"after": after, "limit": limit})
        return [_ENTRIES.decode(row) for row in rows]
