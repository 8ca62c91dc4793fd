"""Counters of what clients use of a generation that ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.adapters.sql.codecs import record_codec
from corpid.adapters.sql.kinds import columns
from corpid.adapters.sql.statements import insert
from corpid.adapters.sql.tables import clients, generation_use
from corpid.ports import UseCount

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.adapters.sql.statements import Database

_COUNTS: Final = record_codec(UseCount)
_KEYS: Final = tuple(column.name for column in generation_use.primary_key)


class SqlUsage:
    """A ports.Usage."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database
        self._add: Final = database.prepare(_addition())
        self._all: Final = database.prepare(
            sa.select(*columns(generation_use, _COUNTS)).order_by(*generation_use.primary_key)
        )

    async def add(self, counts: Sequence[UseCount]) -> None:
        """See ports.Usage. In the order of their keys, so that two processes never wait for each other."""
        async with self._database.transaction():
            for one in sorted(counts, key=lambda each: (each.client_id, each.generation, each.habit)):
                await self._database.run(self._add, _COUNTS.encode(one))

    async def all(self) -> list[UseCount]:
        """See ports.Usage. By client, generation and habit."""
        return [_COUNTS.decode(row) for row in await self._database.rows(self._all, {})]


def _addition() -> sa.Executable:
    """One row of a client that exists is inserted or added to; what a client that is gone counted is no row."""
    values = [sa.bindparam(name, type_=generation_use.c[name].type) for name in _COUNTS.written]
    known = sa.select(*values).where(clients.c.client_id == sa.bindparam("client_id"))
    statement = insert(generation_use).from_select(_COUNTS.written, known)
    stored, new = generation_use.c, statement.excluded
    return statement.on_conflict_do_update(
        index_elements=_KEYS,
        set_={
            "count": stored["count"] + new["count"],
            "last_at": sa.case((stored.last_at > new.last_at, stored.last_at), else_=new.last_at),
        },
    )
