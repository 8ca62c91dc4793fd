"""The schema of PostgreSQL, read or changed while servers use it.

A change of a table waits for its users, and all others wait behind it. So no statement waits
for long: it gives way, lets the others through and tries again.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import asyncpg
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from corpid.stores.sql.migration import (
    DatabaseBusy,
    DatabaseForgetful,
    DatabaseUnreachable,
    EncodingRefused,
    MigrationStopped,
    PoolerRefused,
)
from corpid.stores.sql.postgresql import (
    DIRECTLY,
    DRIVER_ERRORS,
    DatabaseAddress,
    is_pooled,
    name_application,
    parse_address,
)

if TYPE_CHECKING:
    import threading
    from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence


T = TypeVar("T")

_LOCK: Final = 0x436F72704944
"""the number under which migrations of one database wait for one another: "CorpID" """
_CONNECT_SECONDS: Final = 10
_DURABLE: Final = {"fsync": "for this server", "synchronous_commit": "for this database or role"}
"""the settings that must be on, and how to set them"""
_ENCODING: Final = "UTF8"
"""it holds every name; SQL_ASCII takes any bytes, but counts and folds them as ASCII"""
_LOCK_SECONDS: Final = 1
"""how long a statement keeps others waiting behind it; servers give their requests five"""
_LONG_LOCK_SECONDS: Final = 60
"""the same if no one waits behind it"""
_ATTEMPTS: Final = 20
_PAUSE_SECONDS: Final = 0.5
_IN_THE_WAY: Final = frozenset({"55P03", "40P01"})
"""a lock was not to be had, or two waited for each other"""
_UNLIMITED: Final = sa.text("SET LOCAL statement_timeout = 0")
"""the role may have a limit for servers, and work on a large table takes longer"""
_OPEN_TRANSACTIONS: Final = sa.text(
    "SELECT string_agg(DISTINCT application_name || ' since ' || to_char(xact_start, 'HH24:MI:SS'), ', ') "
    "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
    "AND application_name <> 'corpid migrate' AND xact_start < now() - interval '1 second'"
)
_SERVED: Final = sa.text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = ANY(:names)"
)


class _Loop:
    """An event loop in a separate thread.

    The driver needs one, and the caller may be running in another.
    """

    def __init__(self) -> None:
        self._runner: Final = asyncio.Runner()
        self._thread: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="corpid-schema")

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._thread.submit(self._runner.run, work).result()

    def close(self) -> None:
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()


class PostgresTarget:
    def __init__(self, runner: _Loop, place: DatabaseAddress) -> None:
        self.display_name: Final = place.shown
        self._runner: Final = runner
        self._connect: Final = _connector(place)
        self._engine: Final = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=self._connect,
            poolclass=sa.pool.NullPool,
            # A name might be that of a statement which another client left behind in a pooler's session.
            connect_args={"prepared_statement_cache_size": 0, "prepared_statement_name_func": str},
        )

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        return self._runner.run(self._run_inside(work))

    def transact(self, work: Callable[[sa.Connection], T]) -> T:
        for attempt in range(_ATTEMPTS):
            try:
                return self._runner.run(self._run_inside(work, lock_seconds=_LOCK_SECONDS))
            except _LockTaken:
                time.sleep(_PAUSE_SECONDS if attempt + 1 < _ATTEMPTS else 0)
        raise self._busy()

    def run_outside_transaction(self, work: Callable[[sa.Connection], T]) -> T:
        try:
            return self._runner.run(self._run_autocommitted(work))
        except _LockTaken:
            raise self._busy() from None

    @contextmanager
    def hold_lock(self, report: Callable[[str], None], stop: threading.Event) -> Iterator[None]:
        """Hold the migration lock, which belongs to a transaction.

        A pooler in between may give the next transaction to another connection.
        """
        connection = self._runner.run(self._open_connection())
        try:
            waited = False
            while not self._runner.run(_take(connection)):
                if not waited:
                    report("another process migrates this database: waiting for it")
                waited = True
                if stop.wait(_PAUSE_SECONDS):
                    raise MigrationStopped("stopped before anything was changed: another process was migrating")
            yield
        finally:
            self._runner.run(connection.close())

    def is_pooled(self) -> bool:
        """Return whether a pooler answers."""

        async def ask() -> bool:
            connection = await self._open_connection()
            try:
                return await is_pooled(connection)
            finally:
                await connection.close()

        return self._runner.run(ask())

    def refuse_pooler(self) -> None:
        if self.is_pooled():
            raise PoolerRefused(
                f"a pooler answers at {self.display_name}, and a migration needs its own sessions of the database; nothing was "
                f"changed: {DIRECTLY}"
            )

    def refuse_served(self, before: Sequence[str]) -> None:
        names = [name_application(""), *map(name_application, before)]
        running = self.read(lambda connection: connection.scalar(_SERVED, {"names": names}))
        if running:
            raise DatabaseBusy(
                f"servers of a version before have the database {self.display_name} open ({running} connections): replace or "
                "stop them, then run `corpid migrate --contract` again"
            )

    def _busy(self) -> DatabaseBusy:
        """Connections with open transactions: the likely, not certain, blockers."""
        found = self.read(lambda connection: connection.scalar(_OPEN_TRANSACTIONS))
        return DatabaseBusy(
            f"others have used a table of the database {self.display_name} all the time, and this step gave way to them; nothing "
            f"of it was changed. See who has a transaction open ({found or 'pg_stat_activity'}), then run `corpid migrate` again"
        )

    async def _run_inside(self, work: Callable[[sa.Connection], T], *, lock_seconds: int = 0) -> T:
        with _schema_errors(self.display_name, "changed" if lock_seconds else "opened"):
            async with self._engine.begin() as connection:
                await connection.execute(_UNLIMITED)
                if lock_seconds:
                    await connection.execute(sa.text(f"SET LOCAL lock_timeout = '{lock_seconds}s'"))
                return await connection.run_sync(work)

    async def _run_autocommitted(self, work: Callable[[sa.Connection], T]) -> T:
        with _schema_errors(self.display_name, "changed"):
            async with self._engine.connect() as plain:
                connection = await plain.execution_options(isolation_level="AUTOCOMMIT")
                await connection.execute(sa.text("SET statement_timeout = 0"))
                await connection.execute(sa.text(f"SET lock_timeout = '{_LONG_LOCK_SECONDS}s'"))
                return await connection.run_sync(work)

    async def _open_connection(self) -> asyncpg.Connection:
        with _schema_errors(self.display_name):
            return await self._connect()


async def _take(connection: asyncpg.Connection) -> bool:
    """Try for the lock; without it no transaction stays open.

    CREATE INDEX CONCURRENTLY waits for the end of each transaction that it met with a snapshot, so it would wait for
    those who wait for it. A result, too, holds a snapshot until the next statement; one sent as text leaves none.
    """
    await connection.execute("BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0")
    taken = await connection.fetchval("SELECT pg_try_advisory_xact_lock($1)", _LOCK)
    await connection.execute("SELECT" if taken else "ROLLBACK")
    return bool(taken)


class _LockTaken(Exception):
    """Others have the lock."""


@contextmanager
def _schema_errors(shown: str, done: str = "opened") -> Iterator[None]:
    """A sentence on a refusal by PostgreSQL."""
    try:
        yield
    except (*DRIVER_ERRORS, sa.exc.DBAPIError, ValueError) as error:
        if getattr(getattr(error, "orig", None), "sqlstate", None) in _IN_THE_WAY:
            raise _LockTaken from error
        raise DatabaseUnreachable(f"the database {shown} cannot be {done}: {_reason(error)}") from error


@contextmanager
def open_target(url: str) -> Iterator[PostgresTarget]:
    """The database of an address. Raises DatabaseUnreachable, EncodingRefused and DatabaseForgetful."""
    try:
        place = parse_address(url)
    except ValueError as error:
        raise DatabaseUnreachable(f"the database's address cannot be read: {error}") from error
    with closing(_Loop()) as runner:
        found = PostgresTarget(runner, place)
        found.read(lambda connection: _refuse_unsuitable(connection, place.shown))
        yield found


def _connector(place: DatabaseAddress) -> Callable[[], Awaitable[asyncpg.Connection]]:
    async def connect() -> asyncpg.Connection:
        return await asyncpg.connect(
            place.dsn,
            timeout=_CONNECT_SECONDS,
            statement_cache_size=0,
            server_settings={"application_name": "corpid migrate"},
        )

    return connect


def _refuse_unsuitable(connection: sa.Connection, shown: str) -> None:
    """Refuse a database that cannot keep everything.

    Names need UTF-8. A server must not lose commits at a power failure: a code that was spent must stay spent.
    """
    encoding = connection.scalar(sa.text("SHOW server_encoding"))
    if encoding != _ENCODING:
        raise EncodingRefused(
            f"the database {shown} has the encoding {encoding}, which cannot hold every name: make one with `createdb "
            f"-E UTF8 -T template0 -O ROLE NAME`, and name it in database_url (pg_dump and pg_restore move what is in "
            "the old one)"
        )
    for name, where in _DURABLE.items():
        if connection.scalar(sa.text(f"SHOW {name}")) == "off":
            raise DatabaseForgetful(
                f"the database {shown} may lose what it said was written, since its {name} is 'off': set it to 'on' {where}"
            )


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer"
    cause = getattr(error, "orig", None) or error
    return getattr(cause, "strerror", None) or str(cause.__cause__ or cause)
