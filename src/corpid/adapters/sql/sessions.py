"""Signed-in browsers (D30)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.adapters import milliseconds
from corpid.adapters.sql.codecs import record_codec
from corpid.adapters.sql.kinds import columns
from corpid.adapters.sql.statements import upsert
from corpid.adapters.sql.tables import sessions
from corpid.ports import Session

if TYPE_CHECKING:
    from corpid.adapters.sql.audit import SqlAudit
    from corpid.adapters.sql.sign_outs import SignOuts
    from corpid.adapters.sql.statements import Database
    from corpid.ports import AuditEvent

_SESSIONS: Final = record_codec(Session)
_MILLISECONDS: Final = sa.literal_column("1000", sa.BigInteger)
_SWEPT: Final = 500
"""sessions that a sweep removes in one go"""


class SqlSessions:
    """A ports.Sessions."""

    def __init__(self, database: Database, audit: SqlAudit, sign_outs: SignOuts) -> None:
        self._database: Final = database
        self._audit: Final = audit
        self._sign_outs: Final = sign_outs
        this = sessions.c.session_id == sa.bindparam("session_id")
        now = database.now // _MILLISECONDS
        # PostgreSQL asks the clock once, not for every row, and so can use the index
        once = sa.select(now).scalar_subquery()
        expired = (
            sa.select(sessions).where(sessions.c.expires_at <= once).limit(_SWEPT).with_for_update(skip_locked=True)
        )
        self._get: Final = database.prepare(
            sa.select(*columns(sessions, _SESSIONS)).where(this, sessions.c.expires_at > now)
        )
        self._of: Final = database.prepare(
            sa.select(*columns(sessions, _SESSIONS))
            .where(sessions.c.user_id == sa.bindparam("user_id"), sessions.c.expires_at > now)
            .order_by(sessions.c.auth_time.desc(), sessions.c.session_id)
        )
        self._put: Final = database.prepare(upsert(sessions, _SESSIONS.written))
        self._end: Final = database.prepare(sa.delete(sessions).where(this))
        self._use: Final = database.prepare(sa.update(sessions).where(this).values(seen_at=sa.bindparam("at")))
        self._use_for: Final = database.prepare(
            sa.update(sessions).where(this).values(seen_at=sa.bindparam("at"), entity_id=sa.bindparam("chosen"))
        )
        self._sweep: Final = database.prepare(sa.delete(sessions).where(database.among(sessions, expired)))

    async def get(self, session_id: str, *, now: float) -> Session | None:
        """See ports.Sessions. Live while now < expires_at, by the engine's clock where it has one (D49)."""
        row = await self._database.row(self._get, {"session_id": session_id, "now": milliseconds(now)})
        return None if row is None else _SESSIONS.decode(row)

    async def of(self, user_id: str, *, now: float) -> list[Session]:
        """See ports.Sessions."""
        rows = await self._database.rows(self._of, {"user_id": user_id, "now": milliseconds(now)})
        return [_SESSIONS.decode(row) for row in rows]

    async def put(self, session: Session) -> None:
        """See ports.Sessions. Raises MissingReference for a user who is gone."""
        async with self._database.transaction():
            await self._sign_outs.hold_off(session.user_id)
            await self._database.run(self._put, _SESSIONS.encode(session))

    async def end(self, session_id: str, event: AuditEvent) -> None:
        """See ports.Sessions."""
        async with self._database.transaction():
            await self._database.run(self._end, {"session_id": session_id})
            await self._audit.record(event)

    async def use(self, session_id: str, *, at: int, entity_id: str | None = None) -> None:
        """See ports.Sessions."""
        statement = self._use if entity_id is None else self._use_for
        await self._database.write(statement, {"session_id": session_id, "at": at, "chosen": entity_id})

    async def end_all(self, user_id: str, event: AuditEvent, *, but_browser: str = "") -> None:
        """See ports.Sessions."""
        async with self._database.transaction():
            await self._sign_outs.hold(user_id)
            await self._sign_outs.end_sessions(user_id, but_browser=but_browser)
            await self._audit.record(event)

    async def sweep(self, *, now: float) -> int:
        """See ports.Sessions. Those that another process removes are left to it."""
        return await self._database.write(self._sweep, {"now": milliseconds(now)})
