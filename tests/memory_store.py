"""The transient store in dictionaries, with the contract of every engine."""

from __future__ import annotations

import asyncio
from asyncio import current_task
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from corpid.rules.data_loss import NO_LOSS, DataLoss
from corpid.rules.oauth.errors import OAuthError
from corpid.stores import Clock, in_turn, milliseconds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from corpid.rules.transient import PipelinedVerb


class _Entry(msgspec.Struct, frozen=True):
    value: bytes
    count: int
    expires_at: int

    @property
    def content(self) -> bytes:
        return str(self.count).encode() if self.count else self.value


class MemoryTransientStore:
    """A TransientStore that ends with its process."""

    def __init__(self, *, loss: DataLoss = NO_LOSS, clock: Clock | None = None) -> None:
        """`clock` is that of an engine; without one there is none."""
        self.loss: Final = loss
        """see TransientStore; a server's begins with its start"""
        self._clock: Final = clock
        self.entries: Final[dict[tuple[str, bytes], _Entry]] = {}
        self.lock: Final = asyncio.Lock()
        self.owner: asyncio.Task[Any] | None = None
        self.replaced: Final[list[tuple[tuple[str, bytes], _Entry | None]]] = []
        """the values that the open batch replaced, in order"""

    def batch(self, now: float) -> MemoryTransientBatch:
        """A batch of the task that has one open joins it."""
        return MemoryTransientBatch(self, milliseconds(now))

    async def get(self, kind: str, key: bytes, *, now: float) -> bytes | None:
        if self.owner is not None and self.owner is not current_task():
            async with self.lock:
                pass
        entry = self.live(kind, key, milliseconds(now))
        return None if entry is None else entry.content

    async def get_each(self, places: Sequence[tuple[str, bytes]], *, now: float) -> list[bytes | None]:
        return [await self.get(kind, key, now=now) for kind, key in places]

    async def engine_time(self) -> None:
        """Dictionaries have no clock."""

    def engine_time_at_least(self) -> float | None:
        return None if self._clock is None else self._clock()

    async def ready(self, *, now: float) -> None:
        """Dictionaries always take writes."""

    async def sweep(self, *, now: float) -> int:
        moment = milliseconds(now)
        async with self.lock:
            expired = [place for place, entry in self.entries.items() if entry.expires_at <= moment]
            for place in expired:
                del self.entries[place]
        return len(expired)

    def live(self, kind: str, key: bytes, now: int) -> _Entry | None:
        """The entry, if now < expires_at (milliseconds)."""
        entry = self.entries.get((kind, key))
        return entry if entry is not None and now < entry.expires_at else None


class MemoryTransientBatch:
    """A TransientBatch; on an error it restores replaced entries."""

    __slots__ = ("_now", "_outermost", "_store")

    def __init__(self, store: MemoryTransientStore, now: int) -> None:
        self._store = store
        self._now = now
        self._outermost = False

    async def __aenter__(self) -> Self:
        task = current_task()
        if self._store.owner is None or self._store.owner is not task:
            await self._store.lock.acquire()
            self._store.owner = task
            self._outermost = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._outermost:
            return
        if error is not None and not isinstance(error, OAuthError):
            for place, entry in reversed(self._store.replaced):
                self._set(place, entry)
        self._store.replaced.clear()
        self._store.owner = None
        self._store.lock.release()

    async def put(self, kind: str, key: bytes, value: bytes, ttl: float) -> None:
        self._write(kind, key, _Entry(value, 0, self._now + milliseconds(ttl)))

    async def get(self, kind: str, key: bytes) -> bytes | None:
        entry = self._store.live(kind, key, self._now)
        return None if entry is None else entry.content

    async def take(self, kind: str, key: bytes) -> bytes | None:
        entry = self._store.live(kind, key, self._now)
        if entry is None:
            return None
        self._write(kind, key, None)
        return entry.content

    async def add(self, kind: str, key: bytes, ttl: float, value: bytes = b"") -> bool:
        if self._store.live(kind, key, self._now) is not None:
            return False
        self._write(kind, key, _Entry(value, 0, self._now + milliseconds(ttl)))
        return True

    async def count(self, kind: str, key: bytes, ttl: float, by: int = 1) -> int:
        entry = self._store.live(kind, key, self._now) or _Entry(b"", 0, self._now + milliseconds(ttl))
        raised = msgspec.structs.replace(entry, count=entry.count + by)
        self._write(kind, key, raised)
        return raised.count

    async def pipeline(self, verbs: Sequence[PipelinedVerb]) -> list[bytes | bool | None]:
        return await in_turn(self, verbs)

    async def count_unseen(self, kind: str, key: bytes, ttl: float, by: int) -> None:
        await self.count(kind, key, ttl, by)

    async def count_each(self, places: Sequence[tuple[str, bytes, float]]) -> list[int]:
        return [await self.count(kind, key, ttl) for kind, key, ttl in places]

    def _write(self, kind: str, key: bytes, entry: _Entry | None) -> None:
        place = (kind, key)
        self._store.replaced.append((place, self._store.entries.get(place)))
        self._set(place, entry)

    def _set(self, place: tuple[str, bytes], entry: _Entry | None) -> None:
        if entry is None:
            self._store.entries.pop(place, None)
        else:
            self._store.entries[place] = entry
