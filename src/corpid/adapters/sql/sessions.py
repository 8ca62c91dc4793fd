"""Signed-in browsers (D30)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.adapters.sql.codecs import record_codec
from corpid.adapters.sql.kinds import columns
from corpid.adapters.sql.statements import upsert
from corpid.adapters.sql.tables import sessions
from corpid.ports import Session

if TYPE_CHECKING:
    from corpid.adapters.sql.audit import SqlAudit
    from corpid.adapters.sql.statements import Database
    from corpid.ports import AuditEvent, Clock

_SESSIONS: Final = record_codec(Session)
_REMOVED_PER_SIGN_IN: Final = 20


class SqlSessions:
    """A ports.Sessions. Every new session removes some expired ones, so nobody else has to."""

    def __init__(self, database: Database, audit: SqlAudit, clock: Clock) -> None:
        self._database: Final = database
        self._audit: Final = audit
        self._clock: Final = clock
        this = sessions.c.session_id == sa.bindparam("session_id")
        now = sa.bindparam("now", type_=sa.BigInteger)
        expired = (
            sa.select(sessions)
            .where(sessions.c.expires_at <= now)
            .limit(_REMOVED_PER_SIGN_IN)
            .with_for_update(skip_locked=True)
        )
        self._get: Final = database.prepare(
            sa.select(*columns(sessions, _SESSIONS)).where(this, sessions.c.expires_at > now)
        )
        self._put: Final = database.prepare(upsert(sessions, _SESSIONS.written))
        self._end: Final = database.prepare(sa.delete(sessions).where(this))
        self._end_all: Final = database.prepare(
            sa.delete(sessions).where(sessions.c.user_id == sa.bindparam("user_id"))
        )
        self._sweep: Final = database.prepare(sa.delete(sessions).where(database.among(sessions, expired)))

    async def get(self, session_id: str, *, now: float) -> Session | None:
        """See ports.Sessions. Live while now < expires_at."""
        row = await self._database.row(self._get, {"session_id": session_id, "now": int(now)})
        return None if row is None else _SESSIONS.decode(row)

    async def put(self, session: Session) -> None:
        """See ports.Sessions. Raises MissingReference for a user who is gone."""
        async with self._database.transaction():
            await self._database.run(self._sweep, {"now": int(self._clock())})
            await self._database.run(self._put, _SESSIONS.encode(session))

    async def end(self, session_id: str, event: AuditEvent) -> None:
        """See ports.Sessions."""
        async with self._database.transaction():
            await self._database.run(self._end, {"session_id": session_id})
            await self._audit.record(event)

    async def end_all(self, user_id: str, event: AuditEvent) -> None:
        """See ports.Sessions."""
        async with self._database.transaction():
            await self._database.run(self._end_all, {"user_id": user_id})
            await self._audit.record(event)
