"""The transient store on LMDB: a transaction for each verb, one file.

What was written is there for all at once: other requests see the verbs of a batch before it ends, and after a fault (an
error that is no OAuthError) what was spent stays spent, as on Redis. No transaction is open while anything is awaited,
so a process never waits for more than another's verb. The `now` that comes in decides expiry, since there is one clock.

An entry begins with its expiry (8 bytes, milliseconds) and its count (8 bytes); the value follows. Big-endian numbers
compare as they are, so that a live entry is one whose first bytes are greater than those of now. Lifetimes become
milliseconds in place, as in `stores.milliseconds`: a call for each verb would cost a tenth of it.

Several processes of one machine write the file. Pages are changed in a memory map, and nothing is synchronised with the
disk: a transaction costs microseconds and stays when its process is killed. Three dangers come with that:

- After a power loss the file may be damaged. Its name holds the kernel's boot id; files of other boots are removed
  before one is opened.
- A page of the map for which the disk has no block ends the process (SIGBUS). So blocks are allocated before they are
  mapped: a full disk is an error that is caught, and the file is not sparse.
- A process that maps a larger file than others dies if one of them makes it smaller. The size changes under one lock,
  and never goes down.

Entries of a copied file must not come back: the file notes its own inode, and begins again in another. A copy that is
written into the file in place is not noticed. LMDB refuses to open a file twice in a process, so the stores of a
process share it. Source: docs/decisions/0032
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import stat
import threading
import time
from asyncio import sleep
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Final, Protocol, Self, TypeVar

import lmdb

from corpid.rules.data_loss import NO_LOSS, DataLoss
from corpid.rules.failures import StoreUnavailable
from corpid.rules.transient import EngineCondition, PipelinedVerb
from corpid.stores import READINESS, READINESS_SECONDS, Clock, machine_start, milliseconds
from corpid.stores.transient import OpenedStore, OrderlyStops, TransientEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType


_HEAD: Final = Struct(">Qq")
_EXPIRY: Final = Struct(">Q")
_NO_COUNT: Final = bytes(8)
_CHUNK: Final = 500
"""entries that a sweep looks at in one go"""
_name: Final = b"%s\0%s".__mod__
"""of kind and key"""
_PREFIX: Final = "lmdb://"
_MEBIBYTE: Final = 1 << 20
_PLENTY_BYTES: Final = 256 * _MEBIBYTE
T = TypeVar("T")
LINEAGE: Final = b"\0lineage"
"""the name of the entry that holds store identity and inode; no kind begins like it"""
_FIRST_BYTES: Final = 1 << 20
_MOST_BYTES_AT_ONCE: Final = 64 << 20
_BLOCK_BYTES: Final = 512
"""of st_blocks, on every file system"""
_LOCK_TABLE_BYTES: Final = 1 << 14
"""LMDB's own lock file: places for some 250 reading transactions"""
_SIZE_LOCK: Final = "lock"
_DATA_FILE: Final = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|unknown)\.mdb(?:-lock)?")
"""a boot id (`stores.machine_start`) in front"""
_LOOK_SECONDS: Final = 1.0
"""between looks if the file is still in its place"""
_FAILURE_SECONDS: Final = 10.0
"""how long a failed write makes this process unready"""
_OPEN: Final[dict[Path, DataFile]] = {}
_OPENING: Final = threading.Lock()
os.register_at_fork(after_in_child=_OPEN.clear)  # a forked process must not use its parent's


class LmdbEngine(TransientEngine):
    """A TransientEngine for the URLs lmdb:///DIRECTORY."""

    def __init__(self, address: str) -> None:
        self._directory: Final = Path(address.removeprefix(_PREFIX))

    async def open(self, *, clock: Clock, stops: OrderlyStops) -> OpenedStore:  # noqa: ARG002 - servers restart without a loss
        return LmdbTransientStore(open_shared(self._directory, machine_start()))

    async def describe(self) -> list[EngineCondition]:
        """The file's size, and the room to grow."""
        return [_condition(self._directory)]


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


class LmdbTransientStore:
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

    @property
    def store_identity(self) -> str:
        """The name of the file's data."""
        return self.file.store_identity

    def reject_before(self, moment: float, *, store_identity: str) -> None:  # noqa: ARG002 - it stays the same while the file is open
        self._loss = DataLoss(name=repr(moment), reject_issued_before=moment) if moment else NO_LOSS

    async def close(self) -> None:
        release(self.file)

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


def _get(transaction: LmdbTransaction, name: bytes, now: bytes) -> bytes | None:
    """The value or count of a live entry."""
    entry = transaction.get(name)
    if entry is None or entry[:8] <= now:
        return None
    return entry[16:] if entry[8:16] == _NO_COUNT else b"%d" % _HEAD.unpack_from(entry)[1]


def _take(transaction: LmdbTransaction, name: bytes, now: bytes) -> bytes | None:
    content = _get(transaction, name, now)
    if content is not None:
        transaction.delete(name)
    return content


def _put(transaction: LmdbTransaction, name: bytes, entry: bytes) -> None:
    transaction.put(name, entry)


def _add(transaction: LmdbTransaction, name: bytes, entry: bytes, now: bytes) -> bool:
    if transaction.put(name, entry, overwrite=False):
        return True
    before = transaction.get(name)
    if before is not None and before[:8] > now:
        return False
    return transaction.put(name, entry)


def _count(transaction: LmdbTransaction, name: bytes, expires_at: int, by: int, now: bytes) -> int:
    before, count = transaction.get(name), 0
    if before is not None and before[:8] > now:
        expires_at, count = _HEAD.unpack_from(before)
    transaction.put(name, _HEAD.pack(expires_at, count + by))
    return count + by


def _get_each(transaction: LmdbTransaction, names: Sequence[bytes], now: bytes) -> list[bytes | None]:
    return [_get(transaction, name, now) for name in names]


def _count_each(
    transaction: LmdbTransaction, places: Sequence[tuple[str, bytes, float]], now: int, moment: bytes
) -> list[int]:
    return [
        _count(transaction, _name((kind.encode(), key)), now + round(ttl * 1000), 1, moment)
        for kind, key, ttl in places
    ]


def _together(
    transaction: LmdbTransaction, verbs: Sequence[PipelinedVerb], now: int, moment: bytes
) -> list[bytes | bool | None]:
    results: list[bytes | bool | None] = []
    for each in verbs:
        name = _name((each.kind.encode(), each.key))
        if each.verb == "add":
            results.append(_add(transaction, name, _HEAD.pack(now + round(each.ttl * 1000), 0) + each.value, moment))
        else:
            results.append((_get if each.verb == "get" else _take)(transaction, name, moment))
    return results


def _sweep(transaction: LmdbTransaction, after: bytes, now: bytes) -> tuple[int, bytes]:
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


def open_shared(directory: Path, boot: str) -> DataFile:
    """The file of a directory, opened unless this process has it open.

    `boot` identifies this start of the machine. Each call needs a `release`. Raises StoreUnavailable.
    """
    place = directory.absolute()
    with _OPENING:
        if place not in _OPEN:
            _OPEN[place] = DataFile(place, boot)
        file = _OPEN[place]
        file.uses += 1
    return file


def release(file: DataFile) -> None:
    """Close a shared file that nobody else in this process uses."""
    with _OPENING:
        file.uses -= 1
        if file.uses == 0:
            file.close()
            del _OPEN[file.path.parent]


class LmdbTransaction(Protocol):
    """A transaction of LMDB whose names and values are bytes."""

    def get(self, name: bytes) -> bytes | None: ...
    def put(self, name: bytes, value: bytes, *, overwrite: bool = True) -> bool: ...
    def delete(self, name: bytes) -> bool: ...
    def drop(self, database: object, *, delete: bool) -> None: ...
    def cursor(self) -> Cursor: ...


class Cursor(Protocol):
    """A place among the entries, which are ordered by name."""

    def set_range(self, name: bytes) -> bool: ...
    def __iter__(self) -> Iterator[tuple[bytes, bytes]]: ...


class DataFile:
    """The open file of a directory; transactions are functions that it runs."""

    def __init__(self, directory: Path, boot: str) -> None:
        self.path: Final = directory / f"{boot}.mdb"
        self.uses = 0
        self._mutex: Final = threading.Lock()
        """the size must not change while a thread of this process has a transaction open"""
        self._looked_at = time.monotonic()
        self._failed_at = -_FAILURE_SECONDS
        with _refuse_unavailable(self.path):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _chown_to_service(directory, os.open(directory, os.O_DIRECTORY | os.O_NOFOLLOW), close=True)
            self._size_lock: Final = _open_file(directory / _SIZE_LOCK)
            with _hold_lock(self._size_lock):
                _remove_others(directory, boot)
                self._file: Final = _open_file(self.path)
                self._environment: Final = self._open()
                self._allocate()
            found = os.fstat(self._file)
            self._inode: Final = (found.st_dev, found.st_ino)
            self.store_identity: Final = self.transact(
                _own_lineage, self._environment.open_db(None), b"%x-%x" % self._inode
            )
            self.release_readers()

    def _open(self) -> lmdb.Environment:
        lock_table = _open_file(self.path.with_name(f"{self.path.name}-lock"))
        try:
            os.posix_fallocate(lock_table, 0, _LOCK_TABLE_BYTES)
        finally:
            os.close(lock_table)
        return lmdb.open(
            str(self.path),
            map_size=max(self._bytes, _FIRST_BYTES),
            subdir=False,
            max_dbs=0,
            writemap=True,
            sync=False,
            metasync=False,
        )

    @property
    def _bytes(self) -> int:
        return os.fstat(self._file).st_size

    def _allocate(self) -> None:
        """Allocate the blocks of a new file; under the lock of sizes.

        Also of one whose creator died before it did so. Blocks in use are never touched: a file system that cannot
        allocate has them written instead.
        """
        found = os.fstat(self._file)
        if found.st_blocks * _BLOCK_BYTES < found.st_size:
            os.posix_fallocate(self._file, 0, found.st_size)

    def transact(self, act: Callable[..., T], *given: object, writes: bool = True) -> T:
        """Call a function with a transaction, and commit it.

        Returns its result. One that writes waits for that of another process, which takes microseconds. Raises
        StoreUnavailable; then nothing was written.
        """
        with self._mutex:
            while True:
                try:
                    with self._environment.begin(write=writes) as transaction:
                        return act(transaction, *given)
                except (lmdb.MapFullError, lmdb.MapResizedError):
                    self._grow()
                except lmdb.Error as error:
                    self._failed_at = time.monotonic()
                    raise StoreUnavailable(f"{self.path}: {error}") from error

    def _grow(self) -> None:
        """Map what another process has added, or add to the file."""
        self._failed_at = time.monotonic()
        with _refuse_unavailable(self.path), _hold_lock(self._size_lock):
            mapped, size = self._environment.info()["map_size"], self._bytes
            if size <= mapped:
                more = min(size, _MOST_BYTES_AT_ONCE)
                os.posix_fallocate(self._file, size, more)
                size += more
            self._environment.set_mapsize(size)
        self._failed_at = -_FAILURE_SECONDS

    def require_in_place(self) -> None:
        """Raise StoreUnavailable once the file was removed or replaced.

        Other processes would use another one. It looks at most once a second.
        """
        now = time.monotonic()
        if now - self._looked_at < _LOOK_SECONDS:
            return
        with suppress(FileNotFoundError):
            found = self.path.stat()
            if (found.st_dev, found.st_ino) == self._inode:
                self._looked_at = now
                return
        raise StoreUnavailable(f"{self.path} was removed or replaced while it was in use: restart every server")

    def check(self) -> None:
        """Raise StoreUnavailable if a recent write failed.

        A small write may still fit although a request's does not, so a failure is remembered for seconds.
        """
        self.require_in_place()
        if time.monotonic() - self._failed_at < _FAILURE_SECONDS:
            raise StoreUnavailable(f"{self.path}: a write has just failed")

    def release_readers(self) -> None:
        """Free what killed processes were reading."""
        with self._mutex, _refuse_unavailable(self.path):
            self._environment.reader_check()

    def close(self) -> None:
        """Let go of the file."""
        with self._mutex:
            self._environment.close()
            os.close(self._file)
            os.close(self._size_lock)


def _own_lineage(transaction: LmdbTransaction, database: object, inode: bytes) -> str:
    """The store identity of the file's data.

    A new or copied file is emptied, and begins one.
    """
    name, _, noted = (transaction.get(LINEAGE) or b"").partition(b" ")
    if noted != inode:
        transaction.drop(database, delete=False)
        name = secrets.token_hex(16).encode()
        transaction.put(LINEAGE, b"%s %s" % (name, inode))
    return name.decode()


def _remove_others(directory: Path, boot: str) -> None:
    """Remove data files of other boots, which nobody has open.

    Nothing else is removed, whatever the directory holds.
    """
    for each in directory.iterdir():
        found = _DATA_FILE.fullmatch(each.name)
        if found and found[1] != boot:
            each.unlink(missing_ok=True)


def _open_file(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    _chown_to_service(path, descriptor)
    return descriptor


def _chown_to_service(path: Path, descriptor: int, *, close: bool = False) -> None:
    """Give what root has created to the owner of its folder.

    SQLite does so, too: else the service could not use what a command of root has opened. Not what has another name:
    that may be a file of root's.
    """
    try:
        found, owner = os.fstat(descriptor), path.parent.stat()
        is_only_name = found.st_nlink == 1 or stat.S_ISDIR(found.st_mode)
        if os.geteuid() == found.st_uid == 0 and is_only_name and owner.st_uid != 0:
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
    finally:
        if close:
            os.close(descriptor)


@contextmanager
def _hold_lock(descriptor: int) -> Iterator[None]:
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def _refuse_unavailable(path: Path) -> Iterator[None]:
    """Turn the system's and LMDB's errors into StoreUnavailable."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(f"{path}: {error.strerror}") from error
    except lmdb.Error as error:
        raise StoreUnavailable(f"{path}: {error}") from error
