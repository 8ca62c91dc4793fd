"""The transient store in one table; each verb is one statement.

Expiry is part of every statement: a row is live while now < expires_at, and `now` is the database's own
if it has a clock (D49). A row past that may still be there; `put`, `add` and `count` write over it, `get`
and `take` do not see it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from corpid.rules.data_loss import NO_LOSS, DataLoss
from corpid.stores import READINESS, READINESS_SECONDS, in_turn, milliseconds
from corpid.stores.sql.columns import LIMIT, integer_parameter
from corpid.stores.sql.statements import NOW, Database, IsAmong, Statement, Transaction, by_shape, insert, parameters
from corpid.stores.sql.tables import transient

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy.dialects.sqlite import Insert

    from corpid.rules.transient import PipelinedVerb

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


def _values() -> dict[str, sa.ColumnElement[Any]]:
    """A row that ends `ttl` after now."""
    return {**parameters(_COLUMNS), "expires_at": NOW + integer_parameter("ttl")}


@Statement
def _put() -> sa.Executable:
    return _over(insert(transient).values(_values()))


@Statement
def _add() -> sa.Executable:
    statement = insert(transient).values(_values())
    return _over(statement, where=transient.c.expires_at <= NOW).returning(sa.literal_column("1"))


def _over(statement: Insert, where: sa.ColumnElement[bool] | None = None) -> Insert:
    written_over = {name: statement.excluded[name] for name in ("value", "count", "expires_at")}
    return statement.on_conflict_do_update(index_elements=_PLACES, set_=written_over, where=where)


@by_shape
def _looks(number: int) -> sa.Executable:
    """Select several live rows, each with its place in the question."""
    return sa.union_all(
        *(
            sa.select(sa.literal_column(str(each)), *_CONTENT).where(
                transient.c.kind == sa.bindparam(f"kind_{each}"),
                transient.c.key == sa.bindparam(f"key_{each}"),
                transient.c.expires_at > NOW,
            )
            for each in range(number)
        )
    )


@by_shape
def _counts(number: int) -> sa.Executable:
    """Raise several counters, none of them twice."""
    own = ("kind", "key", "ttl")
    rows = []
    for each in range(number):
        bound = {name: sa.bindparam(f"{name}_{each}", type_=_TYPES[name]) for name in own}
        expires_at = NOW + bound.pop("ttl")
        rows.append({**parameters(("value", "count")), **bound, "expires_at": expires_at})
    return _raised(insert(transient).values(rows)).returning(transient.c.key, transient.c["count"])


@Statement
def _count() -> sa.Executable:
    return _raised(insert(transient).values(_values())).returning(transient.c["count"])


def _raised(statement: Insert) -> Insert:
    expired = transient.c.expires_at <= NOW
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
_CHUNK_OF_PLACES: Final = Statement(lambda: _NEXT)
_LIVE: Final = sa.and_(_THIS, transient.c.expires_at > NOW)
_LOOK: Final = Statement(lambda: sa.select(*_CONTENT).where(_LIVE))
_TAKE: Final = Statement(lambda: sa.delete(transient).where(_LIVE).returning(*_CONTENT))
_TIME: Final = Statement(lambda: sa.select(NOW))


@Statement
def _clear() -> sa.Executable:
    """Remove expired rows of the next range.

    Rows that another process holds are left to the next round, so that no request waits for a sweep, nor a sweep for
    anybody.
    """
    expired = sa.select(transient).where(IsAmong(transient, _NEXT), transient.c.expires_at <= NOW)
    return sa.delete(transient).where(IsAmong(transient, expired.with_for_update(skip_locked=True)))


class SqlTransientStore:
    """A TransientStore on a SQL database."""

    def __init__(self, database: Database, *, reject_issued_before: Callable[[], float]) -> None:
        self.database: Final = database
        self._lost_at: Final = reject_issued_before
        self._rejected_before = 0.0
        self._loss = NO_LOSS
        self.written = 0
        """rows written since the last sweep"""
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

    @property
    def store_identity(self) -> str:
        """A constant: the database itself notices the loss of its data (stores.data_loss)."""
        return _LINEAGE

    def reject_before(self, moment: float, *, store_identity: str) -> None:  # noqa: ARG002 - there is one
        self._rejected_before = moment

    async def close(self) -> None:
        """Nothing: the database is closed by its opener."""

    def batch(self, now: float) -> SqlTransientBatch:
        """A transaction, joined by this task's batches and registry writes."""
        return SqlTransientBatch(self, milliseconds(now))

    async def get(self, kind: str, key: bytes, *, now: float) -> bytes | None:
        """Takes no lock."""
        row = await self.database.row(_LOOK, {"kind": kind, "key": key, "now": milliseconds(now)})
        return _content(*row) if row else None

    async def get_each(self, places: Sequence[tuple[str, bytes]], *, now: float) -> list[bytes | None]:
        """Takes no lock."""
        values: dict[str, Any] = {"now": milliseconds(now)}
        for number, (kind, key) in enumerate(places):
            values[f"kind_{number}"], values[f"key_{number}"] = kind, key
        found: list[bytes | None] = [None] * len(places)
        for number, value, count in await self.database.rows(_looks(len(places)), values):
            found[number] = _content(value, count)
        return found

    async def engine_time(self) -> float | None:
        """None on SQLite, which has no clock of its own."""
        if not self.database.has_clock:
            return None
        row = await self.database.row(_TIME, {})
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
        rows = await self.database.rows(_CHUNK_OF_PLACES, {**after, "limit": _CHUNK})
        if not rows:
            self._swept_up_to = _START
            return 0
        last_kind, last_key = rows[-1]
        self._swept_up_to = (last_kind, bytes(last_key)) if len(rows) == _CHUNK else _START
        async with self.database.transaction():
            return await self.database.run(_clear, {**after, "limit": _CHUNK, "now": now})


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
        await self._database.row(_put, row)

    async def get(self, kind: str, key: bytes) -> bytes | None:
        row = await self._database.row(_LOOK, {"kind": kind, "key": key, "now": self._now})
        return _content(*row) if row else None

    async def take(self, kind: str, key: bytes) -> bytes | None:
        row = await self._database.row(_TAKE, {"kind": kind, "key": key, "now": self._now})
        return _content(*row) if row else None

    async def add(self, kind: str, key: bytes, ttl: float, value: bytes = b"") -> bool:
        self._store.written += 1
        row = {"kind": kind, "key": key, "value": value, "count": 0, "now": self._now, "ttl": milliseconds(ttl)}
        return await self._database.row(_add, row) is not None

    async def count(self, kind: str, key: bytes, ttl: float, by: int = 1) -> int:
        self._store.written += 1
        row = {"kind": kind, "key": key, "value": b"", "count": by, "now": self._now, "ttl": milliseconds(ttl)}
        counted = await self._database.row(_count, row)
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
        rows = await self._database.rows(_counts(len(places)), values)
        counted: dict[bytes, int] = dict(rows)
        return [*map(counted.__getitem__, keys)]


def _content(value: bytes, count: int) -> bytes:
    return str(count).encode() if count else bytes(value)
