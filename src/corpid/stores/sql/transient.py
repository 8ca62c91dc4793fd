"""The transient store in one table; each verb is one statement.

Expiry is part of every statement: a row is live while now < expires_at, and `now` is the database's own
if it has a clock (D49). A row past that may still be there; `put`, `add` and `count` write over it, `get`
and `take` do not see it.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from corpid.rules.data_loss import NO_LOSS, DataLoss
from corpid.stores import READINESS, READINESS_SECONDS, Clock, in_turn, milliseconds
from corpid.stores.sql.columns import LIMIT, integer_parameter
from corpid.stores.sql.statements import Database, Transaction, insert, parameters
from corpid.stores.sql.tables import transient
from corpid.stores.transient import OrderlyStops, TransientEngine, TransientStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy.dialects.sqlite import Insert

    from corpid.rules.transient import EngineCondition, PipelinedVerb

_THIS: Final = sa.and_(transient.c.kind == sa.bindparam("kind"), transient.c.key == sa.bindparam("key"))
_CHUNK: Final = 500
"""rows that a sweep looks at in one go"""
_START: Final = ("", b"")
_COLUMNS: Final = tuple(column.name for column in transient.c)
_CONTENT: Final = (transient.c.value, transient.c["count"])
_PLACES: Final = (transient.c.kind, transient.c.key)
_TYPES: Final = {"kind": transient.c.kind.type, "key": transient.c.key.type, "ttl": sa.BigInteger()}
_LINEAGE: Final = "database"
"""kept in the deployment table, so it stays as it is"""


def _values(now: sa.ColumnElement[int]) -> dict[str, sa.ColumnElement[Any]]:
    """A row that ends `ttl` after now."""
    return {**parameters(_COLUMNS), "expires_at": now + integer_parameter("ttl")}


def _put(now: sa.ColumnElement[int]) -> sa.Executable:
    return _over(insert(transient).values(_values(now)))


def _add(now: sa.ColumnElement[int]) -> sa.Executable:
    statement = insert(transient).values(_values(now))
    return _over(statement, where=transient.c.expires_at <= now).returning(sa.literal_column("1"))


def _over(statement: Insert, where: sa.ColumnElement[bool] | None = None) -> Insert:
    written_over = {name: statement.excluded[name] for name in ("value", "count", "expires_at")}
    return statement.on_conflict_do_update(index_elements=_PLACES, set_=written_over, where=where)


def _looks(now: sa.ColumnElement[int], number: int) -> sa.Executable:
    """Select several live rows, each with its place in the question."""
    return sa.union_all(
        *(
            sa.select(sa.literal_column(str(each)), *_CONTENT).where(
                transient.c.kind == sa.bindparam(f"kind_{each}"),
                transient.c.key == sa.bindparam(f"key_{each}"),
                transient.c.expires_at > now,
            )
            for each in range(number)
        )
    )


def _counts(now: sa.ColumnElement[int], number: int) -> sa.Executable:
    """Raise several counters, none of them twice."""
    own = ("kind", "key", "ttl")
    rows = []
    for each in range(number):
        bound = {name: sa.bindparam(f"{name}_{each}", type_=_TYPES[name]) for name in own}
        expires_at = now + bound.pop("ttl")
        rows.append({**parameters(("value", "count")), **bound, "expires_at": expires_at})
    return _raised(insert(transient).values(rows), now).returning(transient.c.key, transient.c["count"])


def _count(now: sa.ColumnElement[int]) -> sa.Executable:
    return _raised(insert(transient).values(_values(now)), now).returning(transient.c["count"])


def _raised(statement: Insert, now: sa.ColumnElement[int]) -> Insert:
    expired = transient.c.expires_at <= now
    raised = {
        "count": sa.case(
            (expired, statement.excluded["count"]), else_=transient.c["count"] + statement.excluded["count"]
        ),
        "expires_at": sa.case((expired, statement.excluded.expires_at), else_=transient.c.expires_at),
    }
    return statement.on_conflict_do_update(index_elements=_PLACES, set_=raised)


_PLACE: Final = sa.tuple_(*_PLACES)
_AFTER: Final = sa.tuple_(sa.bindparam("after_kind"), sa.bindparam("after_key")) < _PLACE
_NEXT: Final = sa.select(*_PLACES).where(_AFTER).order_by(*_PLACES).limit(LIMIT)
"""the places of the next batch, in order"""


def _clear(database: Database) -> sa.Executable:
    """Remove expired rows of the next range.

    Rows that another process holds are left to the next round, so that no request waits for a sweep, nor a sweep for
    anybody.
    """
    expired = sa.select(transient).where(database.is_among(transient, _NEXT), transient.c.expires_at <= database.now)
    return sa.delete(transient).where(database.is_among(transient, expired.with_for_update(skip_locked=True)))


class SqlTransientStore:
    """A TransientStore on a SQL database."""

    def __init__(self, database: Database, *, reject_issued_before: Callable[[], float]) -> None:
        self.database: Final = database
        self._lost_at: Final = reject_issued_before
        self._rejected_before = 0.0
        self._loss = NO_LOSS
        live = sa.and_(_THIS, transient.c.expires_at > database.now)
        self.put: Final = database.prepare(lambda: _put(database.now))
        self.look: Final = database.prepare(lambda: sa.select(*_CONTENT).where(live))
        self.take: Final = database.prepare(lambda: sa.delete(transient).where(live).returning(*_CONTENT))
        self.add: Final = database.prepare(lambda: _add(database.now))
        self.count: Final = database.prepare(lambda: _count(database.now))
        self.looks: Final = cache(lambda number: database.prepare(_looks(database.now, number)))
        self.counts: Final = cache(lambda number: database.prepare(_counts(database.now, number)))
        self.written = 0
        """rows written since the last sweep"""
        self._chunk: Final = database.prepare(_NEXT)
        self._clear: Final = database.prepare(lambda: _clear(database))
        self._time: Final = database.prepare(lambda: sa.select(database.now))
        self._swept_up_to: tuple[str, bytes] = _START

    @property
    def loss(self) -> DataLoss:
        """The last loss, named by its moment.

        It was noted in the transaction that ended what may be incomplete, so every process knows of it.
        """
        moment = max(self._rejected_before, self._lost_at())
        if moment != self._loss.reject_issued_before:
            self._loss = DataLoss(name=repr(moment), reject_issued_before=moment)
        return self._loss

    def reject_before(self, moment: float) -> None:
        self._rejected_before = moment

    def batch(self, now: float) -> SqlTransientBatch:
        """A transaction, joined by this task's batches and registry writes."""
        return SqlTransientBatch(self, milliseconds(now))

    async def get(self, kind: str, key: bytes, *, now: float) -> bytes | None:
        """Takes no lock."""
        row = await self.database.row(self.look, {"kind": kind, "key": key, "now": milliseconds(now)})
        return _content(*row) if row else None

    async def get_each(self, places: Sequence[tuple[str, bytes]], *, now: float) -> list[bytes | None]:
        """Takes no lock."""
        values: dict[str, Any] = {"now": milliseconds(now)}
        for number, (kind, key) in enumerate(places):
            values[f"kind_{number}"], values[f"key_{number}"] = kind, key
        found: list[bytes | None] = [None] * len(places)
        for number, value, count in await self.database.rows(self.looks(len(places)), values):
            found[number] = _content(value, count)
        return found

    async def engine_time(self) -> float | None:
        """None on SQLite, which has no clock of its own."""
        if not self.database.has_clock:
            return None
        row = await self.database.row(self._time, {})
        return None if row is None else float(row[0]) / 1000

    def engine_time_at_least(self) -> None:
        """None: the registry is in the same database."""

    async def ready(self, *, now: float) -> None:
        async with self.batch(now) as batch:
            await batch.put(READINESS, b"", b"", READINESS_SECONDS)

    async def sweep(self, *, now: float) -> int:
        """Walk the table at twice the pace at which it grows."""
        chunks = 1 + 2 * self.written // _CHUNK
        self.written = 0
        removed = 0
        for _ in range(chunks):
            removed += await self._sweep(milliseconds(now))
            if self._swept_up_to == _START:
                break
            await asyncio.sleep(0)
        return removed

    async def _sweep(self, now: int) -> int:
        kind, key = self._swept_up_to
        after = {"after_kind": kind, "after_key": key}
        rows = await self.database.rows(self._chunk, {**after, "limit": _CHUNK})
        if not rows:
            self._swept_up_to = _START
            return 0
        last_kind, last_key = rows[-1]
        self._swept_up_to = (last_kind, bytes(last_key)) if len(rows) == _CHUNK else _START
        async with self.database.transaction():
            return await self.database.run(self._clear, {**after, "limit": _CHUNK, "now": now})


class SqlTransientEngine(TransientEngine):
    """A TransientEngine on the registry's database, which is open already."""

    def __init__(self, store: SqlTransientStore) -> None:
        self._store: Final = store

    async def open(self, *, clock: Clock, stops: OrderlyStops) -> TransientStore:  # noqa: ARG002 - it restarts without a loss
        return self._store

    @property
    def store_identity(self) -> str:
        """A constant: the database itself notices the loss of its data (stores.data_loss)."""
        return _LINEAGE

    def reject_before(self, moment: float, *, store_identity: str) -> None:  # noqa: ARG002 - there is one
        self._store.reject_before(moment)

    async def describe(self) -> list[EngineCondition]:
        """Nothing: the doctor's check of the database is enough."""
        return []

    async def close(self) -> None:
        """Nothing: the database is closed by its opener."""


class SqlTransientBatch(Transaction):
    """A TransientBatch: verbs at one moment, in one transaction."""

    __slots__ = ("_now", "_store")

    def __init__(self, store: SqlTransientStore, now: int) -> None:
        self._database = store.database
        self._store = store
        self._now = now

    async def put(self, kind: str, key: bytes, value: bytes, ttl: float) -> None:
        self._store.written += 1
        row = {"kind": kind, "key": key, "value": value, "count": 0, "now": self._now, "ttl": milliseconds(ttl)}
        await self._database.row(self._store.put, row)

    async def get(self, kind: str, key: bytes) -> bytes | None:
        row = await self._database.row(self._store.look, {"kind": kind, "key": key, "now": self._now})
        return _content(*row) if row else None

    async def take(self, kind: str, key: bytes) -> bytes | None:
        row = await self._database.row(self._store.take, {"kind": kind, "key": key, "now": self._now})
        return _content(*row) if row else None

    async def add(self, kind: str, key: bytes, ttl: float, value: bytes = b"") -> bool:
        self._store.written += 1
        row = {"kind": kind, "key": key, "value": value, "count": 0, "now": self._now, "ttl": milliseconds(ttl)}
        return await self._database.row(self._store.add, row) is not None

    async def count(self, kind: str, key: bytes, ttl: float, by: int = 1) -> int:
        self._store.written += 1
        row = {"kind": kind, "key": key, "value": b"", "count": by, "now": self._now, "ttl": milliseconds(ttl)}
        counted = await self._database.row(self._store.count, row)
        return int(counted[0]) if counted else 0

    async def pipeline(self, verbs: Sequence[PipelinedVerb]) -> list[bytes | bool | None]:
        return await in_turn(self, verbs)

    async def count_unseen(self, kind: str, key: bytes, ttl: float, by: int) -> None:
        await self.count(kind, key, ttl, by)

    async def count_each(self, places: Sequence[tuple[str, bytes, float]]) -> list[int]:
        self._store.written += len(places)
        values: dict[str, Any] = {"now": self._now, "value": b"", "count": 1}
        keys = []
        for number, (kind, key, ttl) in enumerate(places):
            values[f"kind_{number}"], values[f"key_{number}"] = kind, key
            values[f"ttl_{number}"] = milliseconds(ttl)
            keys.append(key)
        rows = await self._database.rows(self._store.counts(len(places)), values)
        counted: dict[bytes, int] = dict(rows)
        return [*map(counted.__getitem__, keys)]


def _content(value: bytes, count: int) -> bytes:
    return str(count).encode() if count else bytes(value)
