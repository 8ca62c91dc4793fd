"""The largest skew of each client's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.rules.client_clocks import ClientClock
from corpid.stores.sql.columns import columns, record_codec
from corpid.stores.sql.deployment import NamedValues
from corpid.stores.sql.statements import insert
from corpid.stores.sql.tables import client_clocks, clients

if TYPE_CHECKING:
    from corpid.stores.sql.statements import Database

_CLOCKS: Final = record_codec(ClientClock)
_OF = client_clocks.c
_SINCE: Final = "client_clocks_since"
_LARGER_AT: Final = "client_clocks_larger_at"


class ClientClocks:
    """The largest skew of each client (docs/decisions/0026)."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database
        self._values: Final = NamedValues(database)
        self._of: Final = database.prepare(
            lambda: sa.select(*columns(client_clocks, _CLOCKS)).where(_OF.client_id == sa.bindparam("client_id"))
        )
        self._note: Final = database.prepare(_noted)

    async def find(self, client_id: str) -> ClientClock | None:
        """The records of a client; None if there are none."""
        row = await self._database.row(self._of, {"client_id": client_id})
        return None if row is None else _CLOCKS.decode(row)

    async def note(self, client_id: str, *, skew: int, period: int, now: float) -> None:
        """Record a skew; a larger one of the same period stays.

        One statement, since several processes record at once. It is on disk when this returns. Nothing is recorded of a client
        that does not exist.
        """
        clock = ClientClock(since=now, period=period, lead=skew, lead_before=skew)
        await self._database.write(self._note, {"client_id": client_id} | _CLOCKS.encode(clock))

    async def recorded_since(self) -> float | None:
        """Since when every skew is recorded, epoch seconds; None: unknown."""
        return await self._moment(_SINCE)

    async def note_larger(self, *, now: float) -> None:
        """Note a skew above that of clients without a record."""
        async with self._database.transaction():
            await self._values.put(_LARGER_AT, repr(now))

    async def larger_at(self) -> float | None:
        """When that was noted last, epoch seconds; None: never."""
        return await self._moment(_LARGER_AT)

    async def _moment(self, name: str) -> float | None:
        found = await self._values.get(name)
        return None if found is None else float(found)

    async def begin(self, *, now: float) -> None:
        """Begin the records: skews of the time before may be missing."""
        async with self._database.transaction():
            await begin_client_clocks(self._database, now=now)


async def begin_client_clocks(database: Database, *, now: float) -> None:
    """Begin the records: skews of the time before may be missing.

    Inside a transaction. docs/decisions/0026
    """
    await NamedValues(database).put(_SINCE, repr(now))


def _noted() -> sa.Executable:
    """Insertion of a client's row, or a raise of its skew.

    The larger skew stays. A later period keeps what the one before had. What was noted for an earlier period than the
    row's raises the row's.
    """
    names = ("client_id", *_CLOCKS.written)
    values = [sa.bindparam(name, type_=client_clocks.c[name].type) for name in names]
    known = sa.select(*values).where(clients.c.client_id == sa.bindparam("client_id"))
    statement = insert(client_clocks).from_select(names, known)
    new = statement.excluded
    is_later, follows = new.period > _OF.period, new.period == _OF.period + 1
    larger = sa.case((new.lead > _OF.lead, new.lead), else_=_OF.lead)
    return statement.on_conflict_do_update(
        index_elements=["client_id"],
        set_={
            "period": sa.case((is_later, new.period), else_=_OF.period),
            "lead": sa.case((is_later, new.lead), else_=larger),
            "lead_before": sa.case((follows, _OF.lead), (is_later, new.lead), else_=_OF.lead_before),
        },
    )
