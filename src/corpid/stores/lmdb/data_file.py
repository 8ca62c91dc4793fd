"""A file of LMDB that several processes of one machine write.

Pages are changed in a memory map, and nothing is synchronised with the disk: a transaction costs microseconds and stays
when its process is killed. Three dangers come with that, and this module answers each:

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
import stat
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import lmdb

from corpid.rules.failures import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

T = TypeVar("T")


class Transaction(Protocol):
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


class DataFile:
    """The open file of a directory; transactions are functions that it runs."""

    def __init__(self, directory: Path, boot: str) -> None:
        self.path: Final = directory / f"{boot}.mdb"
        self.uses = 0
        self._mutex: Final = threading.Lock()
        """the size must not change while a thread of this process has a transaction open"""
        self._looked_at = time.monotonic()
        self._failed_at = -_FAILURE_SECONDS
        with _unavailable(self.path):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _chown_to_service(directory, os.open(directory, os.O_DIRECTORY | os.O_NOFOLLOW), close=True)
            self._size_lock: Final = _opened_file(directory / _SIZE_LOCK)
            with _locked(self._size_lock):
                _remove_others(directory, boot)
                self._file: Final = _opened_file(self.path)
                self._environment: Final = self._open()
                self._allocate()
            found = os.fstat(self._file)
            self._inode: Final = (found.st_dev, found.st_ino)
            self.store_identity: Final = self.transact(
                _own_lineage, self._environment.open_db(None), b"%x-%x" % self._inode
            )
            self.release_readers()

    def _open(self) -> lmdb.Environment:
        lock_table = _opened_file(self.path.with_name(f"{self.path.name}-lock"))
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
        with _unavailable(self.path), _locked(self._size_lock):
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
        with self._mutex, _unavailable(self.path):
            self._environment.reader_check()

    def close(self) -> None:
        """Let go of the file."""
        with self._mutex:
            self._environment.close()
            os.close(self._file)
            os.close(self._size_lock)


def _own_lineage(transaction: Transaction, database: object, inode: bytes) -> str:
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


def _opened_file(path: Path) -> int:
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
def _locked(descriptor: int) -> Iterator[None]:
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def _unavailable(path: Path) -> Iterator[None]:
    """Turn the system's and LMDB's errors into StoreUnavailable."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(f"{path}: {error.strerror}") from error
    except lmdb.Error as error:
        raise StoreUnavailable(f"{path}: {error}") from error
