"""A transient store over another, which changes some of what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corpid.stores.transient import TransientStore


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
