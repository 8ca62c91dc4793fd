"""The transient store on LMDB, with a transaction for each verb.

What was written is there for all at once: other requests see the verbs of a batch before it ends, and after a fault (an
error that is no OAuthError) what was spent stays spent, as on Redis. No transaction is open while anything is awaited,
so a process never waits for more than another's verb. The `now` that comes in decides expiry, since there is one clock.

An entry begins with its expiry (8 bytes, milliseconds) and its count (8 bytes); the value follows. Big-endian numbers
compare as they are, so that a live entry is one whose first bytes are greater than those of now. Lifetimes become
milliseconds in place, as in `stores.milliseconds`: a call for each verb would cost a tenth of it.
"""

from __future__ import annotations

import shutil
from asyncio import sleep
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Final, Self

from corpid.rules.data_loss import NO_LOSS, DataLoss
from corpid.rules.transient import EngineCondition
from corpid.stores import READINESS, READINESS_SECONDS, machine_start, milliseconds
from corpid.stores.lmdb import data_file
from corpid.stores.lmdb.data_file import LINEAGE
from corpid.stores.transient import TransientEngine

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from corpid.rules.transient import PipelinedVerb
    from corpid.stores import Clock
    from corpid.stores.lmdb.data_file import DataFile, Transaction
    from corpid.stores.transient import OrderlyStops, TransientStore

_HEAD: Final = Struct(">Qq")
_EXPIRY: Final = Struct(">Q")
_NO_COUNT: Final = bytes(8)
_CHUNK: Final = 500
"""entries that a sweep looks at in one go"""


_name: Final = b"%s\0%s".__mod__
"""of kind and key"""


def _get(transaction: Transaction, name: bytes, now: bytes) -> bytes | None:
    """The value or count of a live entry."""
    entry = transaction.get(name)
    if entry is None or entry[:8] <= now:
        return None
    return entry[16:] if entry[8:16] == _NO_COUNT else b"%d" % _HEAD.unpack_from(entry)[1]


def _take(transaction: Transaction, name: bytes, now: bytes) -> bytes | None:
    content = _get(transaction, name, now)
    if content is not None:
        transaction.delete(name)
    return content


def _put(transaction: Transaction, name: bytes, entry: bytes) -> None:
    transaction.put(name, entry)


def _add(transaction: Transaction, name: bytes, entry: bytes, now: bytes) -> bool:
    if transaction.put(name, entry, overwrite=False):
        return True
    before = transaction.get(name)
    if before is not None and before[:8] > now:
        return False
    return transaction.put(name, entry)


def _count(transaction: Transaction, name: bytes, expires_at: int, by: int, now: bytes) -> int:
    before, count = transaction.get(name), 0
    if before is not None and before[:8] > now:
        expires_at, count = _HEAD.unpack_from(before)
    transaction.put(name, _HEAD.pack(expires_at, count + by))
    return count + by


class LmdbTransientStore:
    """A TransientStore on LMDB."""

    def __init__(self, file: DataFile) -> None:
        self.file: Final = file
        self._loss = NO_LOSS
        self.written = 0
        """entries written since the last sweep"""
        self._swept_up_to: bytes = LINEAGE

    @property
    def loss(self) -> DataLoss:
        """The loss that was noticed at opening.

        A file is never lost while it is open.
        """
        return self._loss

    def reject_before(self, moment: float) -> None:
        self._loss = DataLoss(name=repr(moment), reject_issued_before=moment) if moment else NO_LOSS

    def batch(self, now: float) -> LmdbTransientBatch:
        """Verbs at one moment; each is there when it has returned."""
        return LmdbTransientBatch(self, now)

    async def get(self, kind: str, key: bytes, *, now: float) -> bytes | None:
        self.file.require_in_place()
        return self.file.transact(_get, _name((kind.encode(), key)), _EXPIRY.pack(milliseconds(now)), writes=False)

    async def get_each(self, places: Sequence[tuple[str, bytes]], *, now: float) -> list[bytes | None]:
        self.file.require_in_place()
        names = [_name((kind.encode(), key)) for kind, key in places]
        return self.file.transact(_get_each, names, _EXPIRY.pack(milliseconds(now)), writes=False)

    async def engine_time(self) -> None:
        """LMDB has no clock."""

    def engine_time_at_least(self) -> None:
        """None: the same power loss affects the registry."""

    async def ready(self, *, now: float) -> None:
        self.file.check()
        async with self.batch(now) as batch:
            await batch.put(READINESS, b"", b"", READINESS_SECONDS)

    async def sweep(self, *, now: float) -> int:
        """Walk the file at twice the pace at which entries are written."""
        self.file.release_readers()
        chunks = 1 + 2 * self.written // _CHUNK
        self.written = removed = 0
        moment = _EXPIRY.pack(milliseconds(now))
        for _ in range(chunks):
            number, self._swept_up_to = self.file.transact(_sweep, self._swept_up_to, moment)
            removed += number
            if self._swept_up_to == LINEAGE:
                break
            await sleep(0)
        return removed


def _get_each(transaction: Transaction, names: Sequence[bytes], now: bytes) -> list[bytes | None]:
    return [_get(transaction, name, now) for name in names]


def _sweep(transaction: Transaction, after: bytes, now: bytes) -> tuple[int, bytes]:
    """Remove the expired among the next entries.

    Returns their number, and the last name that it looked at.
    """
    cursor = transaction.cursor()
    found = islice(cursor, _CHUNK) if cursor.set_range(after + b"\0") else ()
    entries = [(name, entry[:8]) for name, entry in found]
    expired = [name for name, expiry in entries if expiry <= now]
    for name in expired:
        transaction.delete(name)
    return len(expired), entries[-1][0] if len(entries) == _CHUNK else LINEAGE


class LmdbTransientBatch:
    """A TransientBatch whose verbs are transactions of their own."""

    __slots__ = ("_moment", "_now", "_store", "_transact")

    def __init__(self, store: LmdbTransientStore, now: float) -> None:
        self._store = store
        self._transact = store.file.transact
        self._now = milliseconds(now)
        self._moment = _EXPIRY.pack(self._now)

    async def __aenter__(self) -> Self:
        self._store.file.require_in_place()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is left to write."""

    async def put(self, kind: str, key: bytes, value: bytes, ttl: float) -> None:
        self._store.written += 1
        entry = _HEAD.pack(self._now + round(ttl * 1000), 0) + value
        self._transact(_put, _name((kind.encode(), key)), entry)

    async def get(self, kind: str, key: bytes) -> bytes | None:
        return self._transact(_get, _name((kind.encode(), key)), self._moment, writes=False)

    async def take(self, kind: str, key: bytes) -> bytes | None:
        return self._transact(_take, _name((kind.encode(), key)), self._moment)

    async def add(self, kind: str, key: bytes, ttl: float, value: bytes = b"") -> bool:
        self._store.written += 1
        entry = _HEAD.pack(self._now + round(ttl * 1000), 0) + value
        return self._transact(_add, _name((kind.encode(), key)), entry, self._moment)

    async def count(self, kind: str, key: bytes, ttl: float, by: int = 1) -> int:
        self._store.written += 1
        expires_at = self._now + round(ttl * 1000)
        return self._transact(_count, _name((kind.encode(), key)), expires_at, by, self._moment)

    async def count_unseen(self, kind: str, key: bytes, ttl: float, by: int) -> None:
        await self.count(kind, key, ttl, by)

    async def pipeline(self, verbs: Sequence[PipelinedVerb]) -> list[bytes | bool | None]:
        self._store.written += sum(each.verb == "add" for each in verbs)
        return self._transact(_together, verbs, self._now, self._moment)

    async def count_each(self, places: Sequence[tuple[str, bytes, float]]) -> list[int]:
        self._store.written += len(places)
        return self._transact(_count_each, places, self._now, self._moment)


def _together(
    transaction: Transaction, verbs: Sequence[PipelinedVerb], now: int, moment: bytes
) -> list[bytes | bool | None]:
    results: list[bytes | bool | None] = []
    for each in verbs:
        name = _name((each.kind.encode(), each.key))
        if each.verb == "add":
            results.append(_add(transaction, name, _HEAD.pack(now + round(each.ttl * 1000), 0) + each.value, moment))
        else:
            results.append((_get if each.verb == "get" else _take)(transaction, name, moment))
    return results


def _count_each(
    transaction: Transaction, places: Sequence[tuple[str, bytes, float]], now: int, moment: bytes
) -> list[int]:
    return [
        _count(transaction, _name((kind.encode(), key)), now + round(ttl * 1000), 1, moment)
        for kind, key, ttl in places
    ]


# What a `transient_url` names.

_PREFIX: Final = "lmdb://"


class LmdbEngine(TransientEngine):
    """A TransientEngine for the URLs lmdb:///DIRECTORY."""

    def __init__(self, address: str) -> None:
        self._directory: Final = Path(address.removeprefix(_PREFIX))
        self._store: LmdbTransientStore | None = None

    async def open(self, *, clock: Clock, stops: OrderlyStops) -> TransientStore:  # noqa: ARG002 - servers restart without a loss
        self._store = LmdbTransientStore(data_file.open_shared(self._directory, machine_start()))
        return self._store

    @property
    def store_identity(self) -> str:
        """The name of the file's data."""
        return self._opened.file.store_identity

    def reject_before(self, moment: float, *, store_identity: str) -> None:  # noqa: ARG002 - it stays the same while the file is open
        self._opened.reject_before(moment)

    async def describe(self) -> list[EngineCondition]:
        """The file's size, and the room to grow."""
        return [_condition(self._directory)]

    async def close(self) -> None:
        if self._store is not None:
            data_file.release(self._store.file)
            self._store = None

    @property
    def _opened(self) -> LmdbTransientStore:
        if self._store is None:
            raise RuntimeError("LmdbEngine.open comes first")
        return self._store


_MEBIBYTE: Final = 1 << 20
_PLENTY_BYTES: Final = 256 * _MEBIBYTE


def _condition(directory: Path) -> EngineCondition:
    files = [each for each in directory.glob("*.mdb") if each.name.startswith(f"{machine_start()}.")]
    size = sum(each.stat().st_size for each in files)
    seen = f"LMDB in {directory}, {size / _MEBIBYTE:.0f} MiB"
    if not files:
        seen = f"LMDB in {directory}, which the first start creates, or the first one after a restart of the machine"
    existing = next(each for each in (directory, *directory.parents) if each.exists())
    free = shutil.disk_usage(existing).free
    if free < _PLENTY_BYTES:
        change = "Change: make room on this disk; a file that cannot grow ends sign-ins with 503."
        return EngineCondition(
            verdict="warning", seen=f"{seen}; {free / _MEBIBYTE:.0f} MiB of the disk are free", change=change
        )
    return EngineCondition(
        verdict="ok", seen=f"{seen}; when the machine restarts, sign-ins that are under way begin again"
    )
