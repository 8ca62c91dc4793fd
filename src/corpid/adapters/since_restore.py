"""Short-lived state in an engine of its own, after the database beside it was put back.

The engine still has what was issued before. Every kind gets the moment of the restore for a second name, so
nothing of before is found any more; it ends there by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from corpid.ports import TransientStore, TransientUnit


class SinceRestore:
    """A ports.TransientStore over another, which begins at `restored_at` (epoch seconds). docs/decisions/0008"""

    def __init__(self, store: TransientStore, restored_at: float) -> None:
        self._store: Final = store
        self._restored_at: Final = restored_at
        self._epoch: Final = f"{restored_at!r}:"

    @property
    def forgotten_at(self) -> float:
        """See ports.TransientStore."""
        return max(self._restored_at, self._store.forgotten_at)

    def unit(self, now: float) -> SinceRestoreUnit:
        """See ports.TransientStore."""
        return SinceRestoreUnit(self._store.unit(now), self._epoch)

    async def get(self, kind: str, key: bytes, *, now: float) -> bytes | None:
        """See ports.TransientStore."""
        return await self._store.get(self._epoch + kind, key, now=now)

    async def engine_time(self) -> float | None:
        """See ports.TransientStore."""
        return await self._store.engine_time()

    async def ready(self, *, now: float) -> None:
        """See ports.TransientStore."""
        await self._store.ready(now=now)

    async def sweep(self, *, now: float) -> int:
        """See ports.TransientStore."""
        return await self._store.sweep(now=now)


class SinceRestoreUnit:
    """A ports.TransientUnit over another."""

    __slots__ = ("_entered", "_epoch", "_unit")

    _unit: TransientUnit

    def __init__(self, entered: AbstractAsyncContextManager[TransientUnit], epoch: str) -> None:
        self._entered = entered
        self._epoch = epoch

    async def __aenter__(self) -> Self:
        self._unit = await self._entered.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._entered.__aexit__(kind, error, trace)

    async def put(self, kind: str, key: bytes, value: bytes, ttl: float) -> None:
        """See ports.TransientUnit."""
        await self._unit.put(self._epoch + kind, key, value, ttl)

    async def get(self, kind: str, key: bytes) -> bytes | None:
        """See ports.TransientUnit."""
        return await self._unit.get(self._epoch + kind, key)

    async def take(self, kind: str, key: bytes) -> bytes | None:
        """See ports.TransientUnit."""
        return await self._unit.take(self._epoch + kind, key)

    async def add(self, kind: str, key: bytes, ttl: float, value: bytes = b"") -> bool:
        """See ports.TransientUnit."""
        return await self._unit.add(self._epoch + kind, key, ttl, value)

    async def count(self, kind: str, key: bytes, ttl: float) -> int:
        """See ports.TransientUnit."""
        return await self._unit.count(self._epoch + kind, key, ttl)
