"""A promoted PostgreSQL standby, which may lack the last writes.

A standby that is promoted begins a timeline of a higher number. The deployment table, which it copied, still
names the previous one; so the first process that connects finds that they differ, and does as after a restore: sessions
and what lives for minutes end, and what was issued before is refused (DESIGN "What each engine promises").
A server that only restarts stays on its timeline.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from corpid.ports import StoreUnavailable
from corpid.rules.limits import CLOCKS_APART_SECONDS
from corpid.stores.data_loss.restores import FORGOTTEN_AT, forget
from corpid.stores.sql.deployment import NamedValues
from corpid.stores.sql.postgresql import open_database
from corpid.stores.sql.tables import deployment

if TYPE_CHECKING:
    from corpid.ports import Clock
    from corpid.stores.sql.statements import Database

_TIMELINE: Final = "timeline"
_NAME: Final = "takeover in corpid"
"""how the server knows the connection that does it; it is none of a server's"""
_SECONDS: Final = 60
"""how long a statement may take: it ends every session"""
_MILLISECONDS: Final = 1000

# The name of a file of the log begins with its timeline, and any role may ask for it. A standby has none yet.
_HERE: Final = "SELECT CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END"
_NAMED: Final = "(SELECT value FROM deployment WHERE name = '{}')"
_CURRENT_STATE: Final = f"{_HERE}, {_NAMED.format(_TIMELINE)}, {_NAMED.format(FORGOTTEN_AT)}"
_NOTED: Final = (
    sa.update(deployment)
    .where(deployment.c.name == sa.bindparam("named"), deployment.c.value != sa.bindparam("here"))
    .values(value=sa.bindparam("here"))
)


class Takeovers:
    """A process's knowledge of the timelines of its database."""

    def __init__(self, url: str, clock: Clock) -> None:
        self.reject_issued_before = 0.0
        """see ports.TransientStore; 0.0 for never"""
        self._url: Final = url
        self._clock: Final = clock
        self._timeline = ""
        self._settling: asyncio.Task[None] | None = None

    async def admit(self, connection: Any) -> None:  # noqa: ANN401  (the driver has no types)
        """Look at a new connection before it is used.

        Raises StoreUnavailable for a server that is no primary, or no longer. Where it has just taken over, returns
        when what it may lack is refused.
        """
        timeline, noted, reject_issued_before = await connection.fetchrow(_CURRENT_STATE)
        self._refuse(timeline)
        if timeline == noted:
            self._timeline, self.reject_issued_before = (
                timeline,
                max(self.reject_issued_before, float(reject_issued_before or 0)),
            )
            return
        if self._settling is None or self._settling.done():
            self._settling = asyncio.create_task(self.settle())
        await asyncio.shield(self._settling)

    async def settle(self) -> None:
        """Note the timeline of the server.

        If it is another than the one that was noted, forget. Raises StoreUnavailable.
        """
        database = await open_database(self._url, name=_NAME, pool_size=1, seconds=_SECONDS)
        try:
            async with database.transaction():
                timeline, reject_issued_before = await self._settled(database)
        finally:
            await database.close()
        self.reject_issued_before = max(self.reject_issued_before, reject_issued_before)
        self._timeline = timeline

    async def _settled(self, database: Database) -> tuple[str, float]:
        """The timeline, and when something was last forgotten.

        Of several processes, one forgets.
        """
        values = NamedValues(database)
        here = sa.select(sa.text(_HERE.removeprefix("SELECT ")), database.now)
        timeline, milliseconds = await database.row(database.prepare(here), {}) or (None, 0)
        self._refuse(timeline)
        await values.put_first(_TIMELINE, self._timeline or timeline)
        if await database.run(database.prepare(_NOTED), {"named": _TIMELINE, "here": timeline}):
            # Nodes write their own time into what they issue.
            moment = max(self._clock(), milliseconds / _MILLISECONDS) + CLOCKS_APART_SECONDS
            await forget(database, now=moment)
        return timeline, float(await values.get(FORGOTTEN_AT) or 0)

    def _refuse(self, timeline: str | None) -> None:
        if timeline is None:
            raise StoreUnavailable("the database's server is a standby, which nobody can write to")
        if timeline < self._timeline:
            raise StoreUnavailable(
                f"the database's server is of timeline {timeline}, and another has taken over with {self._timeline}: "
                "stop the one that was replaced"
            )
