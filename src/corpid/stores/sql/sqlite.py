"""SQLite: the database of a file, its log, and its schema.

A passive checkpoint blocks no one, but under steady writing it never quite catches up, and the log
grows; past a size one checkpoint therefore asks writers to wait for a moment, which they do without
stopping the loop.

Rules of this module: a statement costs microseconds, so it runs in the loop and never in a thread. A
transaction belongs to the task that began it; others wait for its end before they read or write. If
another process has locked the file, a statement waits up to 2 s without stopping the loop. Checkpoints
run in a thread of their own. Changes of the schema block, on connections of their own.
"""

from __future__ import annotations

import asyncio
import fcntl
import math
import os
import sqlite3
import threading
import time
from asyncio import current_task
from contextlib import AbstractAsyncContextManager, closing, contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite as sqlite_dialect

from corpid.rules.directory.records import Conflict, ExternalIdTaken, MemberNameTaken, MissingReference, NameTaken
from corpid.rules.failures import StoreUnavailable
from corpid.stores import WrappedStore
from corpid.stores.sql.migration import DatabaseBusy, DatabaseUnreachable
from corpid.stores.sql.statements import Row, Statement, Transaction, end_transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from corpid.rules.data_loss import DataLoss
    from corpid.stores.transient import TransientBatch, TransientStore


_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_PRIMARY_CODE: Final = 0xFF
"""the lower byte of an extended result code"""
_PAGES: Final = 4000  # 16 MB
_MOST_PAGES: Final = 16_000  # 64 MB
_SECONDS: Final = 5.0
"""the interval of checks without a signal"""
_BUSY_MILLISECONDS: Final = 200
_FRAME_BYTES: Final = 4096
BUSY_SECONDS: Final = 2.0
"""how long a request waits for another process's write before it is refused"""
_BUSY_TIMEOUT_MILLISECONDS: Final = 5
"""how long one try may hold the loop"""
_FIRST_PAUSE_SECONDS: Final = 0.001
_LONGEST_PAUSE_SECONDS: Final = 0.02
_FAILURE_SECONDS: Final = 10.0
"""how long a failed write makes this process unready"""
_CACHED_STATEMENTS: Final = 512
_COMMITS_PER_CHECKPOINT: Final = 512
_PRAGMAS: Final = (
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA wal_autocheckpoint = 0",
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA cache_size = -32768",
    "PRAGMA temp_store = MEMORY",
)
T = TypeVar("T")
_DIALECT: Final = sqlite_dialect.dialect(paramstyle="qmark")
LOCK_NAME: Final = "migrate.lock"
_LOCK_SECONDS: Final = 60


class SqliteDatabase:
    """A statements.Database on a SQLite file in WAL mode.

    Opened, used and closed in one event loop.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self.has_clock: Final = False
        self.is_pooled: Final = False
        self.writes_in_queries: Final = False
        self.dialect: Final[sa.Dialect] = _DIALECT
        self._lock: Final = asyncio.Lock()
        self._loop: Final = asyncio.get_running_loop()
        self._owner: asyncio.Task[Any] | None = None
        self._holding: Final[set[asyncio.Task[Any] | None]] = set()
        """the tasks whose next transaction stays open until `release_transaction`"""
        self._commits = 0
        self._write_failed_at = -math.inf
        try:
            self._connection: Final = _connect(path)
            self._cursor: Final = self._connection.cursor()
            self._checkpoints: Final = Checkpoints(path)
        except sqlite3.Error as error:
            raise translate_error(error, str(path)) from error

    @property
    def connections_in_use(self) -> int:
        return 0

    async def writers(self, lock: int) -> frozenset[str]:  # noqa: ARG002  (PostgreSQL's)
        """None: there is one at a time, seen after its end."""
        return frozenset()

    async def outlive_writers(self, lock: int) -> None:
        """There is one writer at a time."""

    async def row(self, statement: Statement, values: Mapping[str, Any]) -> Row | None:
        text, bind = statement.compiled(self.dialect)
        bound, cursor = bind(values), None
        # As `_at_once`, without its call: most statements of a request are rows.
        if self._owner is None or self._owner is current_task(self._loop):
            try:
                cursor = self._cursor.execute(text, bound)
            except sqlite3.Error as error:
                if self._owner is not None or not is_busy(error):
                    raise self._failed_write(error) from error
        if cursor is None:
            cursor = await self._after_others(text, bound)
        try:
            row: Row | None = cursor.fetchone()
        except sqlite3.Error as error:
            raise translate_error(error, str(self.path)) from error
        return row

    async def rows(self, statement: Statement, values: Mapping[str, Any]) -> list[Row]:
        text, bind = statement.compiled(self.dialect)
        bound = bind(values)
        cursor = self._at_once(text, bound) or await self._after_others(text, bound)
        try:
            return cursor.fetchall()
        except sqlite3.Error as error:
            raise translate_error(error, str(self.path)) from error

    async def run(self, statement: Statement, values: Mapping[str, Any]) -> int:
        text, bind = statement.compiled(self.dialect)
        bound = bind(values)
        cursor = self._at_once(text, bound) or await self._after_others(text, bound)
        return cursor.rowcount

    async def write(self, statement: Statement, values: Mapping[str, Any]) -> int:
        if self._owner is not None and self._owner is current_task(self._loop):
            return self._own(statement, values).rowcount
        async with self.transaction():
            return await self.run(statement, values)

    async def write_all(self, every: Sequence[Statement], values: Mapping[str, Any]) -> None:
        if self._owner is None or self._owner is not current_task(self._loop):
            async with self.transaction():
                await self.write_all(every, values)
            return
        for statement in every:
            self._own(statement, values)

    def transaction(self) -> Transaction:
        return Transaction(self)

    def hold_transaction(self) -> bool:
        """Keep this task's next transaction open until `release_transaction`.

        False if it has one, or does so already.
        """
        task = current_task(self._loop)
        if task in self._holding or (self._owner is task and task is not None):
            return False
        self._holding.add(task)
        return True

    def release_transaction(self) -> bool:
        """Return whether a transaction was begun meanwhile.

        The caller has to end it.
        """
        task = current_task(self._loop)
        self._holding.discard(task)
        return self._owner is task and task is not None

    async def begin(self) -> bool:
        """Begin a write transaction for this task.

        False if it has one open, which is joined, or if it is kept open.

        Raises StoreUnavailable when others keep the database for more than 2 s.
        """
        task = current_task(self._loop)
        if self._owner is task and task is not None:
            return False
        if self._lock.locked():
            await self._wait_for_lock()
        else:
            await self._lock.acquire()
        try:
            while self._checkpoints.restarting:  # noqa: ASYNC110  (a thread tells, which has no asyncio.Event)
                await asyncio.sleep(_FIRST_PAUSE_SECONDS)
            if self._at_once("BEGIN IMMEDIATE", ()) is None:
                await self._patiently("BEGIN IMMEDIATE", ())
        except BaseException:
            self._lock.release()
            raise
        self._owner = task
        return task not in self._holding

    async def end(self, *, commit: bool) -> None:
        """End this task's transaction.

        Raises StoreUnavailable when the commit fails. Then nothing was written.
        """
        try:
            if commit:
                self._cursor.execute("COMMIT")
            else:
                self._connection.rollback()
        except sqlite3.Error as error:
            self._connection.rollback()
            raise self._failed_write(error) from error
        finally:
            self._owner = None
            self._lock.release()
        self._commits += 1
        if self._commits % _COMMITS_PER_CHECKPOINT == 0:
            self._checkpoints.nudge()

    def check(self) -> None:
        """Raise StoreUnavailable if a checkpoint or a recent write failed.

        A disk may be full or broken. A small write may still fit although a request's does not, so a failure is
        remembered for seconds.
        """
        self._checkpoints.check()
        if time.monotonic() - self._write_failed_at < _FAILURE_SECONDS:
            raise StoreUnavailable(f"{self.path}: a write has just failed")

    async def close(self) -> None:
        """Write everything to the main file and let go of it."""
        await asyncio.to_thread(self._checkpoints.stop)
        self._connection.close()

    def _own(self, statement: Statement, values: Mapping[str, Any]) -> sqlite3.Cursor:
        """Execute a statement in this task's transaction, which waits for nobody."""
        try:
            text, bind = statement.compiled(self.dialect)
            return self._cursor.execute(text, bind(values))
        except sqlite3.Error as error:
            raise self._failed_write(error) from error

    def _at_once(self, text: str, values: Row) -> sqlite3.Cursor | None:
        """Execute a statement now.

        None if it has to wait, for a task of ours or for another process.

        Few have to wait; the others are spared the cost of a coroutine.
        """
        if self._owner is not None and self._owner is not current_task(self._loop):
            return None
        try:
            return self._cursor.execute(text, values)
        except sqlite3.Error as error:
            if self._owner is not None or not is_busy(error):
                raise self._failed_write(error) from error
        return None

    def _failed_write(self, error: sqlite3.Error) -> Exception:
        ours = translate_error(error, str(self.path))
        if isinstance(ours, StoreUnavailable) and self._owner is not None:
            self._write_failed_at = time.monotonic()
        return ours

    async def _after_others(self, text: str, values: Row) -> sqlite3.Cursor:
        await self._wait_for_lock()
        try:
            return await self._patiently(text, values)
        finally:
            self._lock.release()

    async def _wait_for_lock(self) -> None:
        try:
            async with asyncio.timeout(BUSY_SECONDS):
                await self._lock.acquire()
        except TimeoutError:
            raise StoreUnavailable(f"{self.path}: waited {BUSY_SECONDS:g} s for another transaction") from None

    async def _patiently(self, text: str, values: Row) -> sqlite3.Cursor:
        """Another process's write is waited for without stopping the loop."""
        pause = _FIRST_PAUSE_SECONDS * (1 + os.getpid() % 8 / 8)
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return self._cursor.execute(text, values)
            except sqlite3.Error as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise translate_error(error, str(self.path)) from error
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)


class JoinedBatches(WrappedStore):
    """A TransientStore over another, whose batches are joined with writes to SQLite.

    A flow writes records and audit entries inside a batch. With one engine they are one transaction; with two, each of
    these writes would be a transaction of its own. Here they are one that begins with the first of them, so a batch
    without such a write costs SQLite nothing. The order is that of Redis: what was spent stays spent, also if the
    transaction fails.
    """

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


class Checkpoints:
    """Checkpoints that keep a database's write-ahead log short.

    A log of fewer than `pages` pages is left alone; one of more than `most_pages` is made to start again.
    """

    def __init__(self, path: Path, *, pages: int = _PAGES, most_pages: int = _MOST_PAGES) -> None:
        self._few: Final = pages
        self._most: Final = most_pages
        self._path: Final = path
        self._log: Final = path.with_name(path.name + "-wal")
        self._wanted: Final = threading.Event()
        self._stopping = False
        self.restarting = False
        """true for some milliseconds, in which this process should begin no transaction"""
        self._failure: Exception | None = None
        self._connection: sqlite3.Connection | None = None
        """of the thread; opened when the log is first long, which most commands never see"""
        self._thread: Final = threading.Thread(target=self._keep, name="corpid-checkpoints", daemon=True)
        self._thread.start()

    def nudge(self) -> None:
        """Look at the log soon."""
        self._wanted.set()

    def check(self) -> None:
        """Raise StoreUnavailable if the last checkpoint failed, except for locks."""
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """End the thread.

        If it has made a checkpoint, it first writes everything to the main file and empties the log, and this blocks for
        that long. Otherwise SQLite does so when the last connection is closed, which is quick since the log is short.
        """
        self._stopping = True
        self._wanted.set()
        self._thread.join()

    def _keep(self) -> None:
        while not self._stopping:
            self._wanted.wait(_SECONDS)
            self._wanted.clear()
            if self._pages() > self._few:
                self._try("PASSIVE")
        if self._connection is not None:
            self._try("TRUNCATE")
            self._connection.close()

    def _try(self, mode: str) -> None:
        try:
            connection = self._connection = self._connection or self._connect()
            _, pages, _ = connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
            if mode == "PASSIVE" and pages > self._most:
                self.restarting = True
                try:
                    connection.execute("PRAGMA wal_checkpoint(RESTART)")
                finally:
                    self.restarting = False
            self._failure = None
        except sqlite3.Error as error:
            self._failure = None if is_busy(error) else translate_error(error, str(self._path))

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None)
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def _pages(self) -> int:
        try:
            return self._log.stat().st_size // _FRAME_BYTES
        except OSError:
            return 0


class SqliteTarget:
    """A migration target.

    With `create` the file is made (mode 0600) when it is first written to.
    """

    def __init__(self, path: Path, *, create: bool) -> None:
        self.display_name: Final = str(path)
        self._path: Final = path
        self._create: Final = create

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        if not self._create and not self._path.exists():
            raise DatabaseUnreachable(f"the database {self._path} does not exist: run `corpid migrate` to make it")
        return self._run_inside(work, "DEFERRED")

    def transact(self, work: Callable[[sa.Connection], T]) -> T:
        """Takes the write lock at once."""
        return self._run_inside(work, "IMMEDIATE")

    run_outside_transaction = transact

    @contextmanager
    def hold_lock(self, _report: Callable[[str], None], _stop: threading.Event) -> Iterator[None]:
        """One migration at a time on this machine.

        The lock ends with its process. A connection stays open meanwhile: whenever the last one closes, SQLite copies
        its log into the file and waits for the disk, which takes longer than most steps.
        """
        with _lock_file(self._path.with_name(LOCK_NAME), fcntl.LOCK_EX), self._prepare_file():
            yield

    def refuse_pooler(self) -> None:
        """SQLite has none."""

    def refuse_served(self, _before: Sequence[str]) -> None:
        """Refuse while any process has the database open.

        Each holds a lock file, which names no version.
        """
        try:
            with _lock_file(self._path.with_name(f"{self._path.name}.lock"), fcntl.LOCK_EX | fcntl.LOCK_NB):
                return
        except BlockingIOError:
            raise DatabaseBusy(
                f"a server or a command has the database {self._path} open: stop every one of them, then run "
                "`corpid migrate --contract` again"
            ) from None

    def _run_inside(self, work: Callable[[sa.Connection], T], begin: str) -> T:
        try:
            with _engine(self._path, f"BEGIN {begin}").begin() as connection:
                return work(connection)
        except (OSError, sqlite3.Error, sa.exc.DBAPIError) as error:
            raise self._unreachable(error) from error

    @contextmanager
    def _prepare_file(self) -> Iterator[None]:
        """The file in WAL mode, which is impossible inside a transaction."""
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            connection = sqlite3.connect(self._path, timeout=_LOCK_SECONDS)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA schema_version").fetchone()  # opens the log
            except sqlite3.Error:
                connection.close()
                raise
        except (OSError, sqlite3.Error) as error:
            raise self._unreachable(error) from error
        with closing(connection):
            yield

    def _unreachable(self, error: Exception) -> DatabaseUnreachable:
        reason = getattr(error, "strerror", None) or getattr(error, "orig", None) or error
        return DatabaseUnreachable(f"the database {self._path} cannot be opened: {reason}")


def read_revision(path: Path) -> str | None:
    """The last migration of a file in WAL mode.

    None where one statement does not tell: without a file, without that table, or while it is locked.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=0)) as connection:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    except sqlite3.Error:
        return None
    return str(rows[0][0]) if mode == "wal" and len(rows) == 1 else None


@contextmanager
def hold_in_use(path: Path) -> Iterator[None]:
    """Hold off restores of an open database.

    Raises DatabaseBusy during one, and OSError.
    """
    with lock_for_use(
        path, fcntl.LOCK_SH, f"the database {path} is being restored: try again when `corpid restore` is done"
    ):
        yield


@contextmanager
def lock_for_use(path: Path, kind: int, busy: str) -> Iterator[None]:
    """Hold the lock of processes that use a database, or replace it.

    It ends with its process, and its file stays. Raises DatabaseBusy with this text, and OSError.
    """
    descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DatabaseBusy(busy) from None
        yield
    finally:
        os.close(descriptor)


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether a lock is the cause; a retry may succeed."""
    return getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE in _BUSY


def translate_error(error: sqlite3.Error, database: str) -> Exception:
    """Our error for one of sqlite3.

    Conflict for what a constraint refused, StoreUnavailable for a file that is busy, full, unreadable or broken. A
    mistake in our own statements stays as it is.
    """
    if isinstance(error, sqlite3.IntegrityError):
        return _conflict(error)
    if isinstance(error, (sqlite3.ProgrammingError, sqlite3.NotSupportedError)):
        return error
    return StoreUnavailable(f"{database}: {error} ({getattr(error, 'sqlite_errorname', 'no code')})")


def _conflict(error: sqlite3.IntegrityError) -> Conflict:
    if error.sqlite_errorname == "SQLITE_CONSTRAINT_FOREIGNKEY":
        return MissingReference("it refers to a record that does not exist")
    if "users.user_name_key" in str(error):
        return NameTaken("another user has this user name")
    if "memberships.user_name_key" in str(error):
        return MemberNameTaken("another member of the entity has this user name")
    if "memberships.external_id" in str(error):
        return ExternalIdTaken("another member of the entity has this external identifier")
    return Conflict(str(error))


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        isolation_level=None,
        cached_statements=_CACHED_STATEMENTS,
        timeout=BUSY_SECONDS,  # the first process to open the file locks the others out while it reads the log
    )
    for pragma in _PRAGMAS:
        connection.execute(pragma)
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreUnavailable(f"{path}: this file system does not support SQLite's WAL mode; use a local disk")
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MILLISECONDS}")
    return connection


def _engine(path: Path, begin: str) -> sa.Engine:
    """An engine without the driver's own transactions.

    Those would leave changes to the schema outside.
    """
    uri = f"{path.absolute().as_uri()}?mode=rw"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_LOCK_SECONDS)

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.pool.NullPool)

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


@contextmanager
def _lock_file(file: Path, kind: int) -> Iterator[None]:
    """A file lock that ends with its process.

    Raises BlockingIOError if `kind` is not to wait.
    """
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise DatabaseUnreachable(f"the data directory {file.parent} cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, kind)
        yield
    finally:
        os.close(descriptor)
