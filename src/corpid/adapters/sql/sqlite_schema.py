"""One connection to a SQLite file for changing or reading its schema."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.adapters.sql.schema_errors import DatabaseUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LOCK_NAME: Final = "migrate.lock"
_LOCK_SECONDS: Final = 60


def inside(path: Path, work: Callable[[sa.Connection], None], *, change: bool) -> None:
    """Do `work` on one connection, in one transaction.

    With `change` the file is made (mode 0600) if need be, and others that want to change it wait. Raises
    DatabaseUnreachable, and what `work` raises.
    """
    if not change and not path.exists():
        raise DatabaseUnreachable(f"the database {path} does not exist: run `corpid migrate` to make it")
    with ExitStack() as held:
        if change:
            held.enter_context(_lock(path))
        work(held.enter_context(_connected(path, create=change)))


@contextmanager
def _connected(path: Path, *, create: bool) -> Iterator[sa.Connection]:
    """One connection inside one transaction, which takes the write lock at once when the file may be written."""
    try:
        if create:
            _prepare_file(path)
        with _engine(path, "BEGIN IMMEDIATE" if create else "BEGIN").begin() as connection:
            yield connection
    except (OSError, sqlite3.Error, sa.exc.DBAPIError) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "orig", None) or error
        raise DatabaseUnreachable(f"the database {path} cannot be opened: {reason}") from error


def _engine(path: Path, begin: str) -> sa.Engine:
    """The driver's own transactions would leave changes to the schema outside of them."""
    uri = f"{path.absolute().as_uri()}?mode=rw"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_LOCK_SECONDS)

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.pool.NullPool)

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _prepare_file(path: Path) -> None:
    """WAL mode is a property of the file and cannot be changed inside a transaction."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(path, timeout=_LOCK_SECONDS)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    finally:
        connection.close()


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """One migration at a time on this machine; the lock ends with its process."""
    try:
        descriptor = os.open(path.with_name(LOCK_NAME), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise DatabaseUnreachable(f"the data directory {path.parent} cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
