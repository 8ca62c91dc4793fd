"""What lives for minutes, in one table. Each verb is one statement on the primary key.

Expiry is part of every statement: a row is live while now < expires_at. A row past that may still be
there; `put`, `add` and `count` write over it, `get` and `take` do not see it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import sqlalchemy as sa

from corpid.adapters import milliseconds
from corpid.adapters.sql.statements import insert, parameters, upsert
from corpid.adapters.sql.tables import transient

if TYPE_CHECKING:
    from types import TracebackType

    from corpid.adapters.sql.statements import Database, Prepared, Row

_NOW: Final = sa.bindparam("now", type_=sa.BigInteger)
_ROW: Final = sa.and_(transient.c.kind == sa.bindparam("kind"), transient.c.key == sa.bindparam("key"))
_LIVE: Final = sa.and_(_ROW, transient.c.expires_at > _NOW)
_EXPIRED: Final = transient.c.expires_at <= _NOW
_COLUMNS: Final = tuple(column.name for column in transient.c)
_CONTENT: Final = (transient.c.value, transient.c["count"])


def _add() -> sa.Executable:
    statement = insert(transient).values(parameters(_COLUMNS))
    written_over = {name: statement.excluded[name] for name in ("value", "count", "expires_at")}
    return statement.on_conflict_do_update(index_elements=["kind", "key"], set_=written_over, where=_EXPIRED).returning(
        sa.literal_column("1")
    )


def _count() -> sa.Executable:
    statement = insert(transient).values(parameters(_COLUMNS))
    raised = {
        "count": sa.case((_EXPIRED, statement.excluded["count"]), else_=transient.c["count"] + sa.literal_column("1")),
        "expires_at": sa.case((_EXPIRED, statement.excluded.expires_at), else_=transient.c.expires_at),
    }
    return statement.on_conflict_do_update(index_elements=["kind", "key"], set_=raised).returning(transient.c["count"])


def _sweep() -> sa.Executable:
    key = (transient.c.kind, transient.c.key)
    some = sa.select(*key).where(_EXPIRED).limit(sa.bindparam("limit", type_=sa.Integer))
    return sa.delete(transient).where(sa.tuple_(*key).in_(some))


class SqlTransientStore:
    """A ports.TransientStore on a SQL database."""

    def __init__(self, database: Database, *, forgotten_at: float = 0.0) -> None:
        self.database: Final = database
        self.forgotten_at: Final = forgotten_at
        """epoch seconds at which this store last lost what it held; 0.0: never"""
        self.put: Final = database.prepare(upsert(transient, _COLUMNS))
        self.look: Final = database.prepare(sa.select(*_CONTENT).where(_LIVE))
        self.take: Final = database.prepare(sa.delete(transient).where(_LIVE).returning(*_CONTENT))
        self.add: Final = database.prepare(_add())
        self.count: Final = database.prepare(_count())
        self._sweep: Final = database.prepare(_sweep())

    def unit(self, now: float) -> SqlTransientUnit:
        """See ports.TransientStore. One transaction, which a unit or a registry write of the same task joins."""
        return SqlTransientUnit(self, milliseconds(now))

    async def get(self, kind: str, key: bytes, *, now: float) -> bytes | None:
        """See ports.TransientStore. Takes no lock."""
        row = await self.database.row(self.look, {"kind": kind, "key": key, "now": milliseconds(now)})
        return _content(row)

    async def sweep(self, *, now: float, limit: int = 500) -> int:
        """See ports.TransientStore."""
        async with self.database.transaction():
            return await self.database.run(self._sweep, {"now": milliseconds(now), "limit": limit})


class SqlTransientUnit:
    """A ports.TransientUnit: verbs at one moment, in one transaction."""

    __slots__ = ("_database", "_now", "_store", "_transaction")

    def __init__(self, store: SqlTransientStore, now: int) -> None:
        self._store = store
        self._database = store.database
        self._now = now
        self._transaction = store.database.transaction()

    async def __aenter__(self) -> Self:
        await self._transaction.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transaction.__aexit__(kind, error, trace)

    async def put(self, kind: str, key: bytes, value: bytes, ttl: float) -> None:
        """See ports.TransientUnit."""
        await self._row(self._store.put, kind, key, ttl, value)

    async def get(self, kind: str, key: bytes) -> bytes | None:
        """See ports.TransientUnit."""
        return _content(await self._row(self._store.look, kind, key))

    async def take(self, kind: str, key: bytes) -> bytes | None:
        """See ports.TransientUnit."""
        return _content(await self._row(self._store.take, kind, key))

    async def add(self, kind: str, key: bytes, ttl: float, value: bytes = b"") -> bool:
        """See ports.TransientUnit."""
        return await self._row(self._store.add, kind, key, ttl, value) is not None

    async def count(self, kind: str, key: bytes, ttl: float) -> int:
        """See ports.TransientUnit."""
        row = await self._row(self._store.count, kind, key, ttl, first=1) or (0,)
        return int(row[0])

    async def _row(
        self, prepared: Prepared, kind: str, key: bytes, ttl: float = 0, value: bytes = b"", first: int = 0
    ) -> Row | None:
        now = self._now
        values = {
            "kind": kind, "key": key, "value": value, "now": now,
            "expires_at": now + milliseconds(ttl), "count": first,
        }  # fmt: skip
        return await self._database.row(prepared, values)


def _content(row: Row | None) -> bytes | None:
    if row is None:
        return None
    value, count = row
    return str(count).encode() if count else bytes(value)
