"""The schema of a database: made and changed by Alembic migrations inside this package, checked at start."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK_NAME: Final = "migrate.lock"
_LOCATION: Final = "corpid.adapters.sql:migrations"
_LOCK_SECONDS: Final = 60


class SchemaError(Exception):
    """The database cannot be used by this version of CorpID, or not at all; the message is one sentence."""


class SchemaNewer(SchemaError):
    """A newer CorpID has migrated the database."""


class SchemaOlder(SchemaError):
    """The database waits for `corpid migrate`."""


class DatabaseUnreachable(SchemaError):
    """The database cannot be opened."""


def migrate(path: Path) -> None:
    """Bring a SQLite database to this version's schema, making the file (mode 0600) if need be.

    One transaction: an interrupted migration leaves the schema as it was. Processes that migrate at once
    wait for one another. Raises SchemaNewer, DatabaseUnreachable. Source: DESIGN "Parts we take"
    """
    with _lock(path), _connected(path, create=True) as connection:
        _refuse_newer(connection, path)
        configuration = _configuration()
        configuration.attributes["connection"] = connection
        command.upgrade(configuration, "head")


def check(path: Path) -> None:
    """Raise SchemaOlder, SchemaNewer or DatabaseUnreachable unless the database has this version's schema."""
    if not path.exists():
        raise DatabaseUnreachable(f"the database {path} does not exist: run `corpid migrate` to make it")
    with _connected(path, create=False) as connection:
        _refuse_newer(connection, path)
        revision = MigrationContext.configure(connection).get_current_revision()
    if revision != _scripts().get_current_head():
        raise SchemaOlder(f"the database {path} has an older schema than this CorpID needs: run `corpid migrate`")


def _refuse_newer(connection: sa.Connection, path: Path) -> None:
    revision = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in _scripts().walk_revisions()}
    if revision is not None and revision not in known:
        raise SchemaNewer(
            f"the database {path} was migrated by a newer CorpID (its schema is {revision!r}): "
            "run that version, or restore a backup from before the migration"
        )


def _configuration() -> Config:
    configuration = Config()
    configuration.set_main_option("script_location", _LOCATION)
    return configuration


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_configuration())


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
