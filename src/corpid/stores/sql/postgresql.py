"""PostgreSQL through a pool of connections, with or without a pooler.

Rules of this module: a read takes a connection for one statement, without a transaction. A transaction
belongs to the task that began it alone, not to tasks that it starts. Who gets no
connection, or no answer, within seconds is refused.

A connection that did its work goes to the caller who has waited longest, or is kept for the next one, since the pool's
own giving back and taking costs more than a read. One that failed goes back to the pool, which makes sure that it is
sound.

A pooler, such as pgbouncer, assigns sessions of the server to its clients, each for as long as the client is connected
or for one transaction, and no client can find out which. So behind any pooler nothing is kept in a session: no prepared
statements, unless the address gives their number, and no time limit. Each transaction sets its own; a single statement
has that of the role. What needs a session of its own is refused.
"""

from __future__ import annotations

import asyncio
import math
from asyncio import current_task
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast
from urllib.parse import parse_qsl, urlencode, urlsplit

import asyncpg
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as postgresql_dialect

from corpid.rules.directory.records import Conflict, ExternalIdTaken, MemberNameTaken, MissingReference, NameTaken
from corpid.rules.failures import StoreUnavailable
from corpid.stores.sql.statements import Database, Row, Statement, Transaction, by_shape

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    Admission: TypeAlias = Callable[[Any], Awaitable[None]]
    Question: TypeAlias = Callable[[Any, str, Row], Awaitable[Any]]

_CACHE_OPTION: Final = "statement_cache_size"
_CONSTRAINT_CLASS: Final = "23"
_FOREIGN_KEY: Final = "23503"
_UNAVAILABLE_CLASSES: Final = frozenset({
    "08",  # the connection is gone
    "28",  # the password is refused
    "53",  # no memory, disk or connection left
    "57",  # shutdown, start, a statement that took too long
    "58",  # the server's own system fails
    "F0",  # its configuration
    "XX",  # its data
})  # fmt: skip
_UNAVAILABLE: Final = frozenset({
    "25006",  # read-only: it was the primary before a failover
    "25P03",  # a transaction stood idle too long
    "3D000",  # the database is gone
    "40001",  # serialization
    "40P01",  # deadlock
    "42501",  # privileges were taken away
    "55P03",  # a lock was not to be had
})  # fmt: skip
_PREPARED_ELSEWHERE: Final = frozenset({"26000", "42P05"})
"""a prepared statement is not there, or is there already"""
_STALE: Final = frozenset({"25006", "57P01", "57P02", "57P03"})
_CLOSED: Final = ("connection is closed", "connection was closed", "pool is closing", "pool is closed", "released back")
_LOW_BITS: Final = 32
_LOCK_ATTEMPTS: Final = 500
_LOCK_PAUSE_SECONDS: Final = 0.01
STATEMENT_SECONDS: Final = 5
"""how long a statement may take, by the server's count"""
_ANSWER_SECONDS: Final = 1.0
"""how much longer an answer may take, by ours: a server that hangs counts nothing"""
_NUL: Final = "\0"
_COMMIT: Final = "COMMIT"
_ROLLBACK: Final = "ROLLBACK"
_DIALECT: Final = postgresql_dialect.dialect(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]
DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
"""the driver's exceptions; a timeout is an OSError"""
ACQUIRE_SECONDS: Final = 2.0
"""how long a request waits for a connection before it is refused"""
BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
_CACHED_STATEMENTS: Final = 512
DIRECTLY: Final = (
    "give it the address of PostgreSQL itself, for this command alone (`CORPID_DATABASE_URL=postgresql://… corpid …`)"
)
"""what to do if a session is needed"""
_TIMEOUT: Final = "statement_timeout"


class DatabaseAddress(NamedTuple):
    """A database's address, for the driver and for messages."""

    dsn: str
    shown: str
    cached_statements: int | None
    """None if the address does not say"""


def parse_address(url: str) -> DatabaseAddress:
    """A parsed `postgresql://…` address.

    `statement_cache_size` is ours: how many statements a connection prepares, behind a pooler none unless it is given
    (this module says why). The other parameters are the driver's. `shown` is without secrets. Raises ValueError for a
    malformed number of statements.
    """
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    cached = options.pop(_CACHE_OPTION, None)
    place = parts.netloc.rpartition("@")[2] or options.get("host", "")
    return DatabaseAddress(
        parts._replace(query=urlencode(options)).geturl(),
        f"postgresql://{place}{parts.path}",
        None if cached is None else int(cached),
    )


def name_application(version: str) -> str:
    """The application_name of a version, named by its last migration.

    "" before 0003.
    """
    return f"corpid {version}".rstrip()


async def open_database(
    url: str, *, name: str, pool_size: int, seconds: int = STATEMENT_SECONDS, admit: Admission | None = None
) -> PostgresDatabase:
    """The database of a `postgresql://` address.

    At most `pool_size` connections, which the server knows by `name` and which `admit` checks before they are used. A
    statement may take `seconds`. Raises StoreUnavailable.
    """
    place = parse_address(url)
    connector = Connector(seconds=seconds, cached_statements=place.cached_statements)
    try:
        pool = await asyncpg.create_pool(
            place.dsn,
            connect=connector,
            connection_class=StatelessConnection,
            min_size=0,
            max_size=pool_size,
            max_queries=math.inf,
            max_inactive_connection_lifetime=0,
            max_cached_statement_lifetime=0,
            timeout=ACQUIRE_SECONDS,
            command_timeout=seconds + _ANSWER_SECONDS,
            init=admit,
            server_settings={"application_name": name},
        )
    except DRIVER_ERRORS as error:
        raise translate_error(error, place.shown) from error
    return PostgresDatabase(pool, place.shown, connector)


class PostgresDatabase:
    """A statements.Database on PostgreSQL. Opened, used and closed in one event loop."""

    def __init__(self, pool: asyncpg.Pool, place: str, connector: Connector) -> None:
        self.place: Final = place
        """its address without secrets, for messages"""
        self.has_clock: Final = True
        self.writes_in_queries: Final = True
        self._connector: Final = connector
        self._connections: Final = Connections(pool)
        self.dialect: Final[sa.Dialect] = _DIALECT
        self._loop: Final = asyncio.get_running_loop()
        self._open: Final[dict[asyncio.Task[Any] | None, Any]] = {}

    @property
    def is_pooled(self) -> bool:
        """True if the first connection showed a pooler."""
        return self._connector.pooled

    @property
    def connections_in_use(self) -> int:
        """Connections that a statement or a transaction has now."""
        return self._connections.in_use

    async def row(self, statement: Statement, values: Mapping[str, Any]) -> Row | None:
        text, bind = statement.compiled(self.dialect)
        bound = bind(values)
        if _has_nul(bound):
            return None
        row: Row | None = await self._ask(_fetch_row, text, bound)
        return row

    async def rows(self, statement: Statement, values: Mapping[str, Any]) -> list[Row]:
        text, bind = statement.compiled(self.dialect)
        bound = bind(values)
        if _has_nul(bound):
            return []
        rows: list[Row] = await self._ask(_fetch, text, bound)
        return rows

    async def run(self, statement: Statement, values: Mapping[str, Any]) -> int:
        text, bind = statement.compiled(self.dialect)
        bound = bind(values)
        if _has_nul(bound):
            raise Conflict("it contains U+0000, which PostgreSQL does not keep")
        tag: str = await self._ask(_execute, text, bound)
        return int(tag.rpartition(" ")[2])

    async def write(self, statement: Statement, values: Mapping[str, Any]) -> int:
        """PostgreSQL commits a single statement by itself, in one round trip."""
        return await self.run(statement, values)

    async def write_all(self, every: Sequence[Statement], values: Mapping[str, Any]) -> None:
        async with self.transaction():
            for statement in every:
                await self.run(statement, values)

    def transaction(self) -> Transaction:
        return Transaction(self)

    async def begin(self) -> bool:
        """Begin a transaction for this task.

        False if it has one open, which is joined.

        Raises StoreUnavailable, also when every connection is in use for more than 2 s.
        """
        task = current_task(self._loop)
        if task in self._open:
            return False
        connection = await self._acquire()
        try:
            await self._run_translated(connection, _execute, self._connector.begin, ())
        except BaseException:
            await self._connections.drop(connection)
            raise
        self._open[task] = connection
        return True

    async def end(self, *, commit: bool) -> None:
        """End this task's transaction. Raises StoreUnavailable when the commit fails."""
        connection = self._open.pop(current_task(self._loop))
        wanted = _COMMIT if commit else _ROLLBACK
        try:
            answered = await self._run_translated(connection, _execute, wanted, ())
        except BaseException:
            await self._connections.drop(connection)
            raise
        self._connections.keep(connection)
        if answered != wanted:
            raise StoreUnavailable(f"{self.place}: a statement of this transaction had failed, so nothing was written")

    def check(self) -> None:
        """Nothing to check: PostgreSQL confirms a write only after writing it."""

    async def writers(self, lock: int) -> frozenset[str]:
        return frozenset(name for (name,) in await self.rows(select_holders(lock), {}))

    async def outlive_writers(self, lock: int) -> None:
        await outlive_writers(self, lock)

    async def close(self) -> None:
        """Let go of every connection."""
        await self._connections.close()

    async def _ask(self, question: Question, text: str, bound: Row) -> Any:  # noqa: ANN401  (row, rows or tag)
        held = self._open.get(current_task(self._loop)) if self._open else None
        if held is not None:
            return await self._run_translated(held, question, text, bound)
        connection = await self._acquire()
        try:
            answer = await self._run_translated(connection, question, text, bound)
        except BaseException:
            await self._connections.release(connection)
            raise
        self._connections.keep(connection)
        return answer

    async def _run_translated(self, connection: Any, question: Question, text: str, bound: Row) -> Any:  # noqa: ANN401
        try:
            return await question(connection, text, bound)
        except DRIVER_ERRORS as error:
            if is_stale(error):
                await self._connections.drop(connection)
            raise translate_error(error, self.place) from error

    async def _acquire(self) -> Any:  # noqa: ANN401  (the pool's proxy of a connection)
        try:
            return await self._connections.acquire()
        except DRIVER_ERRORS as error:
            raise translate_error(error, self.place) from error


class Connections:
    """The connections of one process. Used and closed in one event loop."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool: Final = pool
        self._loop: Final = asyncio.get_running_loop()
        self._idle: Final[list[Any]] = []
        self._taken: Final[set[Any]] = set()
        """those that are not in the pool: in use, or idle here"""
        self._requested = 0
        """those that the pool has been asked for"""
        self._waiting: Final[deque[asyncio.Future[Any]]] = deque()
        """callers who wait: each gets a connection, or None if the pool may open another"""

    @property
    def in_use(self) -> int:
        """Connections that a statement or a transaction has now."""
        return int(self._pool.get_size()) - int(self._pool.get_idle_size()) - len(self._idle)

    async def acquire(self) -> Any:  # noqa: ANN401  (the pool's proxy of a connection)
        """Return an open connection. Raises DRIVER_ERRORS, also after ACQUIRE_SECONDS."""
        end = self._loop.time() + ACQUIRE_SECONDS
        while True:
            if self._idle:
                connection = self._idle.pop()
            elif len(self._taken) + self._requested < self._pool.get_max_size():
                return await self._from_pool()
            else:
                connection = await self._from_another_caller(end)
            if connection is not None and _is_open(connection):
                return connection
            if connection is not None:
                await self.release(connection)

    def keep(self, connection: Any) -> None:  # noqa: ANN401
        """Keep a connection that did its work."""
        if not self._hand_over(connection):
            self._idle.append(connection)

    async def release(self, connection: Any) -> None:  # noqa: ANN401
        """Give a connection back to the pool, once.

        One that cannot be given back is closed by the pool: the answer was had before.
        """
        try:
            with suppress(*DRIVER_ERRORS):
                await self._pool.release(connection)
        finally:
            if connection in self._taken:
                self._taken.remove(connection)
                self._hand_over(None)

    async def drop(self, connection: Any) -> None:  # noqa: ANN401
        """Close a connection instead of keeping it; the pool opens another."""
        with suppress(asyncpg.InterfaceError):
            connection.terminate()
        await self.release(connection)

    async def close(self) -> None:
        try:
            async with asyncio.timeout(ACQUIRE_SECONDS):
                while self._idle:
                    await self.release(self._idle.pop())
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    async def _from_pool(self) -> Any:  # noqa: ANN401
        self._requested += 1
        connection = None
        try:
            connection = await self._pool.acquire(timeout=ACQUIRE_SECONDS)
        finally:
            self._requested -= 1
            if connection is None:
                self._hand_over(None)
            else:
                self._taken.add(connection)
        return connection

    async def _from_another_caller(self, end: float) -> Any:  # noqa: ANN401
        """Wait for a connection of another caller.

        Raises TimeoutError at `end`, by the loop's time.
        """
        waiting = self._loop.create_future()
        self._waiting.append(waiting)
        too_late = self._loop.call_at(end, _time_out, waiting)
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                self._pass_on(waiting.result())
            raise
        finally:
            too_late.cancel()

    def _pass_on(self, connection: Any) -> None:  # noqa: ANN401
        """Pass on what a caller got and no longer wants."""
        if connection is None:
            self._hand_over(None)
        else:
            self.keep(connection)

    def _hand_over(self, connection: Any) -> bool:  # noqa: ANN401
        """Hand over to the caller who has waited longest.

        False if nobody waits.
        """
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(connection)
                return True
        return False


class StatelessConnection(asyncpg.Connection):  # type: ignore[misc,unused-ignore]
    """A connection that keeps no state except a transaction.

    The driver ends that.
    """

    def get_reset_query(self) -> str:
        """Nothing: a connection has no session state to reset."""
        return ""


class Connector:
    """Opens connections; the first one detects a pooler."""

    def __init__(self, *, seconds: int, cached_statements: int | None) -> None:
        self._seconds: Final = seconds
        self._cached_statements: Final = cached_statements
        self._pooled: bool | None = None
        """None before the first connection"""

    @property
    def pooled(self) -> bool:
        """True if a pooler was found."""
        return bool(self._pooled)

    @property
    def begin(self) -> str:
        """Begins a transaction whose statements have a time limit."""
        return f"{BEGIN}; SET LOCAL {_TIMEOUT} = '{self._seconds}s'" if self._pooled else BEGIN

    async def __call__(self, dsn: str, **options: Any) -> Any:  # noqa: ANN401  (the driver has no types)
        """Open a connection, with the pool's options."""
        if self._pooled is None:
            try:
                connection = await self._open(dsn, options, pooled=False)
            except asyncpg.PostgresError as error:
                if _TIMEOUT not in str(error):
                    raise
                self._pooled = True  # only a pooler refuses this setting
            else:
                self._pooled = await is_pooled(connection)
                if not self._pooled:
                    return connection
                await connection.close()
        return await self._open(dsn, options, pooled=self._pooled)

    async def _open(self, dsn: str, options: dict[str, Any], *, pooled: bool) -> Any:  # noqa: ANN401
        limits = {} if pooled else {_TIMEOUT: f"{self._seconds}s"}
        cached = self._cached_statements
        if cached is None:
            cached = 0 if pooled else _CACHED_STATEMENTS
        own = {"server_settings": options["server_settings"] | limits, "statement_cache_size": cached}
        return await asyncpg.connect(dsn, **(options | own))


async def is_pooled(connection: asyncpg.Connection) -> bool:
    """Return whether the session is another one than was connected to.

    A pooler reports a process number of its own.
    """
    # Without parameters no statement is prepared: a pooler might run it in another session.
    answer: str = await connection.execute(f"SELECT WHERE pg_backend_pid() = {int(connection.get_server_pid())}")
    return answer == "SELECT 0"


@by_shape
def select_holders(lock: int) -> sa.Select[tuple[str]]:
    """The transactions of others that have an advisory lock.

    PostgreSQL shows its number in two halves.
    """
    names = ("virtualtransaction", "locktype", "granted", "pid", "database", "classid", "objid", "objsubid")
    locks = sa.table("pg_locks", *map(sa.column, names))
    here = sa.text("(SELECT oid FROM pg_database WHERE datname = current_database())")
    low = (1 << _LOW_BITS) - 1
    halves = {locks.c.classid: lock >> _LOW_BITS, locks.c.objid: lock & low, locks.c.objsubid: 1}
    return (
        sa.select(locks.c.virtualtransaction)
        .where(locks.c.locktype == sa.literal_column("'advisory'"), locks.c.granted, locks.c.database == here)
        .where(*(half == sa.literal_column(str(value)) for half, value in halves.items()))
        .where(locks.c.pid != sa.func.pg_backend_pid())
    )


async def outlive_writers(database: Database, lock: int) -> None:
    """Return when every transaction that has a lock now has ended.

    Later ones do not count.

    Raises StoreUnavailable after five seconds.
    """
    waited_for = await database.writers(lock)
    for _ in range(_LOCK_ATTEMPTS):
        if not waited_for:
            return
        await asyncio.sleep(_LOCK_PAUSE_SECONDS)
        waited_for &= await database.writers(lock)
    raise StoreUnavailable(
        "a transaction has been writing to the audit table for more than five seconds: look for it in pg_stat_activity, "
        "or try again"
    )


def is_stale(error: BaseException) -> bool:
    """Return whether this connection must be replaced.

    Another one may lead to a better server, as after a failover. One that did not answer in time must not give its late
    answer to another caller.
    """
    return isinstance(error, OSError) or getattr(error, "sqlstate", None) in _STALE


def translate_error(error: Exception, database: str) -> Exception:
    """Our error for one of the driver.

    Conflict for what a constraint refused, StoreUnavailable for a server that is away, full, too busy or read-only. A
    mistake in our own statements stays as it is.
    """
    if isinstance(error, OSError):
        return StoreUnavailable(f"{database}: {_describe(error)}")
    if isinstance(error, asyncpg.PostgresError):
        code = error.sqlstate or ""
        if code.startswith(_CONSTRAINT_CLASS):
            return _conflict(error)
        if code in _UNAVAILABLE or code[:2] in _UNAVAILABLE_CLASSES:
            return StoreUnavailable(f"{database}: {error} ({code})")
        if code in _PREPARED_ELSEWHERE:
            return StoreUnavailable(
                f"{database}: {error} ({code}). A pooler gave a prepared statement to another session: let it prepare statements "
                f"itself (max_prepared_statements of pgbouncer), or leave {_CACHE_OPTION} out of database_url"
            )
        return cast("Exception", error)
    if isinstance(error, asyncpg.InternalClientError) or any(text in str(error) for text in _CLOSED):
        return StoreUnavailable(f"{database}: {error}")
    return error


def _describe(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    return error.strerror or str(error)


def _conflict(error: asyncpg.PostgresError) -> Conflict:
    if error.sqlstate == _FOREIGN_KEY:
        return MissingReference("it refers to a record that does not exist")
    match getattr(error, "constraint_name", None):
        case "uq_users_user_name_key":
            return NameTaken("another user has this user name")
        case "ix_memberships_user_name":
            return MemberNameTaken("another member of the entity has this user name")
        case "ix_memberships_external_id":
            return ExternalIdTaken("another member of the entity has this external identifier")
    return Conflict(str(error))


def _has_nul(bound: Row) -> bool:
    """Return whether a value holds U+0000, which PostgreSQL cannot store.

    A query for such a text finds nothing.
    """
    for value in bound:  # noqa: SIM110 - every statement comes here, and a generator costs as much as the rest
        if type(value) is str and _NUL in value:
            return True
    return False


def _fetch_row(connection: Any, text: str, bound: Row) -> Awaitable[Any]:  # noqa: ANN401
    answer: Awaitable[Any] = connection.fetchrow(text, *bound)
    return answer


def _fetch(connection: Any, text: str, bound: Row) -> Awaitable[Any]:  # noqa: ANN401
    answer: Awaitable[Any] = connection.fetch(text, *bound)
    return answer


def _execute(connection: Any, text: str, bound: Row) -> Awaitable[Any]:  # noqa: ANN401
    answer: Awaitable[Any] = connection.execute(text, *bound)
    return answer


def _time_out(waiting: asyncio.Future[Any]) -> None:
    if not waiting.done():
        waiting.set_exception(TimeoutError())


def _is_open(connection: Any) -> bool:  # noqa: ANN401
    """Return whether a connection is open and not returned to the pool.

    The pool takes one back if the server ended it.
    """
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:
        return False
