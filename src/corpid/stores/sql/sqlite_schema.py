"""The schema of a SQLite file, read or changed."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import sqlalchemy as sa

from corpid.stores.sql.migration_target import DatabaseBusy, DatabaseUnreachable

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

T = TypeVar("T")

LOCK_NAME: Final = "migrate.lock"
_LOCK_SECONDS: Final = 60


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
        return self._inside(work, "DEFERRED")

    def transact(self, work: Callable[[sa.Connection], T]) -> T:
        """Takes the write lock at once."""
        return self._inside(work, "IMMEDIATE")

    run_outside_transaction = transact

    @contextmanager
    def hold_lock(self, _report: Callable[[str], None], _stop: threading.Event) -> Iterator[None]:
        """One migration at a time on this machine.

        The lock ends with its process. A connection stays open meanwhile: whenever the last one closes, SQLite copies
        its log into the file and waits for the disk, which takes longer than most steps.
        """
        with _locked(self._path.with_name(LOCK_NAME), fcntl.LOCK_EX), self._prepared():
            yield

    def refuse_pooler(self) -> None:
        """SQLite has none."""

    def refuse_served(self, _before: Sequence[str]) -> None:
        """Refuse while any process has the database open.

        Each holds a lock file, which names no version.
        """
        try:
            with _locked(self._path.with_name(f"{self._path.name}.lock"), fcntl.LOCK_EX | fcntl.LOCK_NB):
                return
        except BlockingIOError:
            raise DatabaseBusy(
                f"a server or a command has the database {self._path} open: stop every one of them, then run "
                "`corpid migrate --contract` again"
            ) from None

    def _inside(self, work: Callable[[sa.Connection], T], begin: str) -> T:
        try:
            with _engine(self._path, f"BEGIN {begin}").begin() as connection:
                return work(connection)
        except (OSError, sqlite3.Error, sa.exc.DBAPIError) as error:
            raise self._unreachable(error) from error

    @contextmanager
    def _prepared(self) -> Iterator[None]:
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


@contextmanager
def in_use(path: Path) -> Iterator[None]:
    """Hold off restores of an open database.

    Raises DatabaseBusy during one, and OSError.
    """
    with locked_for_use(
        path, fcntl.LOCK_SH, f"the database {path} is being restored: try again when `corpid restore` is done"
    ):
        yield


@contextmanager
def locked_for_use(path: Path, kind: int, busy: str) -> Iterator[None]:
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
def _locked(file: Path, kind: int) -> Iterator[None]:
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
