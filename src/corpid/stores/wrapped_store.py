"""Transient stores over another, and batches joined with writes to SQLite.

A flow writes records and audit entries inside a batch. With one engine they are one transaction; with two, each of
these writes would be a transaction of its own. `JoinedBatches` makes them one that begins with the first of them, so a
batch without such a write costs SQLite nothing. The order is that of Redis: what was spent stays spent, also if the
transaction fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.stores.sql.statements import end_transaction

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from corpid.rules.transient import DataLoss
    from corpid.stores.sql.sqlite import SqliteDatabase
    from corpid.stores.transient import TransientBatch, TransientStore


class WrappedStore:
    """The methods of a TransientStore that every wrapper passes on."""

    def __init__(self, store: TransientStore) -> None:
        self._store = store

    async def engine_time(self) -> float | None:
        return await self._store.engine_time()

    def engine_time_at_least(self) -> float | None:
        return self._store.engine_time_at_least()

    async def ready(self, *, now: float) -> None:
        await self._store.ready(now=now)

    async def sweep(self, *, now: float) -> int:
        return await self._store.sweep(now=now)


class JoinedBatches(WrappedStore):
    """A TransientStore over another, next to a SQLite database."""

    def __init__(self, store: TransientStore, database: SqliteDatabase) -> None:
        super().__init__(store)
        self._database: Final = database

    @property
    def loss(self) -> DataLoss:
        return self._store.loss

    def batch(self, now: float) -> JoinedBatch:
        return JoinedBatch(self._store.batch(now), self._database)

    async def get(self, kind: str, key: bytes, *, now: float) -> bytes | None:
        return await self._store.get(kind, key, now=now)

    async def get_each(self, places: Sequence[tuple[str, bytes]], *, now: float) -> list[bytes | None]:
        return await self._store.get_each(places, now=now)


class JoinedBatch:
    """Opens the other store's batch, whose verbs it leaves as they are."""

    __slots__ = ("_batch", "_database", "_is_outermost")

    def __init__(self, batch: AbstractAsyncContextManager[TransientBatch], database: SqliteDatabase) -> None:
        self._batch = batch
        self._database = database

    async def __aenter__(self) -> TransientBatch:
        batch = await self._batch.__aenter__()
        self._is_outermost = self._database.hold_transaction()
        return batch

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._batch.__aexit__(kind, error, trace)
        except BaseException as failure:
            error = failure
            raise
        finally:
            if self._is_outermost and self._database.release_transaction():
                await end_transaction(self._database, error)
