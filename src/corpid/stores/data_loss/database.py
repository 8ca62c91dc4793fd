"""Data loss of a database: restarts, restores, takeovers by a standby, and a changed transient store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import sqlalchemy as sa

from corpid.stores.sql.deployment import NamedValues
from corpid.stores.sql.tables import transient

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from corpid.ports import TransientStore, TransientUnit
    from corpid.stores.sql.statements import Database

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_START: Final = "machine_start"
FORGOTTEN_AT: Final = "forgotten_at"
"""the name under which the moment is kept, epoch seconds"""


def machine_start() -> str:
    """What differs after every start of the machine; a system that does not say is taken never to lose power."""
    return _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else "not told"


async def reject_issued_before(database: Database, *, start: str, now: float) -> float:
    """Empty the short-lived table if the machine was started since the database was last opened.

    Returns the epoch seconds of the last time that happened, 0.0 for never. Raises StoreUnavailable.
    """
    values = NamedValues(database)
    empty = database.prepare(sa.delete(transient))
    async with database.transaction():
        before = await values.get(_MACHINE_START)
        if before != start:
            await values.put(_MACHINE_START, start)
        if before not in (None, start):
            await database.run(empty, {})
            await values.put(FORGOTTEN_AT, repr(now))
        return float(await values.get(FORGOTTEN_AT) or 0.0)


_IN_USE: Final = "store_in_use"
_NONE: Final = "none"
_UNKNOWN: Final = "unknown"


async def none_yet(database: Database) -> None:
    """Note that a new deployment has used no store, before it gets its first keys. Raises StoreUnavailable.

    So of many that start at once nobody finds keys without a note.
    """
    async with database.transaction():
        await NamedValues(database).put_first(_IN_USE, _said(_NONE, 0.0))


async def use(database: Database, lineage: str, *, moment: float) -> float:
    """Note that the store of this lineage is used from now on. Raises StoreUnavailable.

    Returns before when everything is to be refused, epoch seconds: 0.0 if no other store was ever used, what was
    noted if it is this one already, else `moment`.
    """
    values = NamedValues(database)
    while True:
        before = await values.get(_IN_USE) or await _unknown(database)
        used, _, since = before.partition(" ")
        if used == lineage:
            return float(since)
        refused_before = 0.0 if used == _NONE else moment
        async with database.transaction():
            if await values.change(_IN_USE, before, _said(lineage, refused_before)):
                return refused_before


async def _unknown(database: Database) -> str:
    """For a deployment that is older than this note."""
    values = NamedValues(database)
    async with database.transaction():
        await values.put_first(_IN_USE, _said(_UNKNOWN, 0.0))
    return str(await values.get(_IN_USE))


def _said(lineage: str, since: float) -> str:
    return f"{lineage} {since!r}"


class SinceRestore:
    """A ports.TransientStore over another, which begins at `restored_at` (epoch seconds). docs/decisions/0008"""

    def __init__(self, store: TransientStore, restored_at: float) -> None:
        self._store: Final = store
        self._restored_at: Final = restored_at
        self._epoch: Final = f"{restored_at!r}:"

    @property
    def reject_issued_before(self) -> float:
        """See ports.TransientStore."""
        return max(self._restored_at, self._store.reject_issued_before)

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
