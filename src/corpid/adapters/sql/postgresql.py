"""PostgreSQL through a pool of connections.

Rules of this module: a read takes a connection for one statement, without a transaction. A transaction
belongs to the task that began it and to nobody else, also not to tasks that it starts. Who gets no
connection, or no answer, within seconds is refused. A connection that did its work is kept here for the
next one who asks, since the pool's own giving back and taking costs more than a read; one that failed, or
that somebody waits for, goes through the pool, which makes sure that it is sound."""

from __future__ import annotations

import asyncio
import math
from asyncio import current_task
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import asyncpg
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as postgresql_dialect

from corpid.adapters.sql import postgresql_locks, statements
from corpid.adapters.sql.postgresql_address import address
from corpid.adapters.sql.postgresql_errors import DRIVER_ERRORS, is_stale, translated
from corpid.adapters.sql.transactions import Transaction
from corpid.ports import Conflict, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from corpid.adapters.sql.statements import Prepared, Row

    Admission: TypeAlias = Callable[[Any], Awaitable[None]]
    Question: TypeAlias = Callable[[Any, str, Row], Awaitable[Any]]

ACQUIRE_SECONDS: Final = 2.0
"""how long a request waits for a connection before it is refused"""
STATEMENT_SECONDS: Final = 5
"""how long a statement may take, by the server's count"""
_ANSWER_SECONDS: Final = 1.0
"""how much longer an answer may take, by ours: a server that hangs counts nothing"""
_NUL: Final = "\0"

_ADDRESS: Final[sa.ColumnElement[Any]] = sa.literal_column("ctid")

_BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
_COMMIT: Final = "COMMIT"
_ROLLBACK: Final = "ROLLBACK"

_MILLISECONDS: Final = sa.cast(
    sa.func.floor(sa.extract("epoch", sa.func.clock_timestamp()) * sa.literal_column("1000")), sa.BigInteger
)


class Connection(asyncpg.Connection):  # type: ignore[misc,unused-ignore]
    """A connection that leaves no state behind but a transaction, which the driver ends."""

    def get_reset_query(self) -> str:
        """Nothing, since nothing was said that the server would have to forget."""
        return ""


class PostgresDatabase:
    """A statements.Database on PostgreSQL. Opened, used and closed in one event loop."""

    def __init__(self, pool: asyncpg.Pool, place: str) -> None:
        self.place: Final = place
        """its address without secrets, for messages"""
        self.now: Final[sa.ColumnElement[int]] = _MILLISECONDS
        self.has_clock: Final = True
        self._pool: Final = pool
        self._dialect: Final = postgresql_dialect.dialect(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]
        self._loop: Final = asyncio.get_running_loop()
        self._open: Final[dict[asyncio.Task[Any] | None, Any]] = {}
        self._idle: Final[list[Any]] = []
        self._waiting = 0

    def among(self, table: sa.Table, chosen: sa.Select[Any]) -> sa.ColumnElement[bool]:  # noqa: ARG002  (SQLite's)
        """See statements.Database. By the rows' addresses: a join would make the planner guess how many there are."""
        addresses = chosen.with_only_columns(_ADDRESS, maintain_column_froms=True).scalar_subquery()
        return sa.any_(sa.func.array(addresses)) == _ADDRESS

    @property
    def connections_in_use(self) -> int:
        """Connections that a statement or a transaction has now."""
        return int(self._pool.get_size()) - int(self._pool.get_idle_size()) - len(self._idle)

    def prepare(self, statement: sa.Executable) -> Prepared:
        """See statements.Database."""
        return statements.prepare(statement, self._dialect)

    async def row(self, prepared: Prepared, values: Mapping[str, Any]) -> Row | None:
        """See statements.Database."""
        bound = prepared.bind(values)
        if _unspeakable(bound):
            return None
        row: Row | None = await self._ask(_fetch_row, prepared.text, bound)
        return row

    async def rows(self, prepared: Prepared, values: Mapping[str, Any]) -> list[Row]:
        """See statements.Database."""
        bound = prepared.bind(values)
        if _unspeakable(bound):
            return []
        rows: list[Row] = await self._ask(_fetch, prepared.text, bound)
        return rows

    async def run(self, prepared: Prepared, values: Mapping[str, Any]) -> int:
        """See statements.Database."""
        bound = prepared.bind(values)
        if _unspeakable(bound):
            raise Conflict("it contains U+0000, which PostgreSQL does not keep")
        tag: str = await self._ask(_execute, prepared.text, bound)
        return int(tag.rpartition(" ")[2])

    async def write(self, prepared: Prepared, values: Mapping[str, Any]) -> int:
        """See statements.Database. PostgreSQL commits a single statement by itself, in one round trip."""
        return await self.run(prepared, values)

    def transaction(self) -> Transaction:
        """See statements.Database."""
        return Transaction(self)

    async def begin(self) -> bool:
        """Begin a transaction for this task; False if it has one open, which is joined.

        Raises StoreUnavailable, also when every connection is in use for more than 2 s.
        """
        task = current_task(self._loop)
        if task in self._open:
            return False
        connection = await self._acquire()
        try:
            await self._told(connection, _execute, _BEGIN, ())
        except BaseException:
            await self._drop(connection)
            raise
        self._open[task] = connection
        return True

    async def end(self, *, commit: bool) -> None:
        """End this task's transaction. Raises StoreUnavailable when the commit fails."""
        connection = self._open.pop(current_task(self._loop))
        wanted = _COMMIT if commit else _ROLLBACK
        try:
            told = await self._told(connection, _execute, wanted, ())
        except BaseException:
            await self._drop(connection)
            raise
        await self._keep(connection)
        if told != wanted:
            raise StoreUnavailable(f"{self.place}: a statement of this transaction had failed, so nothing was written")

    def check(self) -> None:
        """Nothing that PostgreSQL tells only afterwards: a write that was answered was written."""

    async def outlive_writers(self, lock: int) -> None:
        """See statements.Database."""
        await postgresql_locks.outlive(self, self.prepare(postgresql_locks.holders(lock)))

    async def close(self) -> None:
        """Let go of every connection."""
        try:
            async with asyncio.timeout(ACQUIRE_SECONDS):
                while self._idle:
                    await self._release(self._idle.pop())
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    async def _ask(self, question: Question, text: str, bound: Row) -> Any:  # noqa: ANN401  (row, rows or tag)
        held = self._open.get(current_task(self._loop)) if self._open else None
        if held is not None:
            return await self._told(held, question, text, bound)
        connection = await self._acquire()
        try:
            answer = await self._told(connection, question, text, bound)
        except BaseException:
            await self._release(connection)
            raise
        await self._keep(connection)
        return answer

    async def _told(self, connection: Any, question: Question, text: str, bound: Row) -> Any:  # noqa: ANN401
        try:
            return await question(connection, text, bound)
        except DRIVER_ERRORS as error:
            if is_stale(error):
                await self._drop(connection)
            raise translated(error, self.place) from error

    async def _acquire(self) -> Any:  # noqa: ANN401  (the pool's proxy of a connection)
        while self._idle:
            connection = self._idle.pop()
            if _is_open(connection):
                return connection
            await self._release(connection)
        self._waiting += 1
        try:
            return await self._pool.acquire(timeout=ACQUIRE_SECONDS)
        except DRIVER_ERRORS as error:
            raise translated(error, self.place) from error
        finally:
            self._waiting -= 1

    async def _keep(self, connection: Any) -> None:  # noqa: ANN401
        if self._waiting:
            await self._release(connection)
        else:
            self._idle.append(connection)

    async def _release(self, connection: Any) -> None:  # noqa: ANN401
        """A connection that cannot be given back is closed by the pool; the answer was had before."""
        with suppress(*DRIVER_ERRORS):
            await self._pool.release(connection)

    async def _drop(self, connection: Any) -> None:  # noqa: ANN401
        """Close it rather than give it back; the next one is made anew."""
        with suppress(asyncpg.InterfaceError):
            connection.terminate()
        await self._release(connection)


async def open_database(
    url: str, *, name: str, pool_size: int, seconds: int = STATEMENT_SECONDS, admit: Admission | None = None
) -> PostgresDatabase:
    """The database of a `postgresql://` address, with at most `pool_size` connections, which the server knows by
    `name` and which `admit` has looked at before they are used; a statement may take `seconds`.

    Raises StoreUnavailable.
    """
    place = address(url)
    try:
        pool = await asyncpg.create_pool(
            place.dsn,
            connection_class=Connection,
            min_size=0,
            max_size=pool_size,
            max_queries=math.inf,
            max_inactive_connection_lifetime=0,
            statement_cache_size=place.cached_statements,
            max_cached_statement_lifetime=0,
            timeout=ACQUIRE_SECONDS,
            command_timeout=seconds + _ANSWER_SECONDS,
            init=admit,
            server_settings={
                "application_name": name,
                "statement_timeout": f"{seconds}s",
            },
        )
    except DRIVER_ERRORS as error:
        raise translated(error, place.shown) from error
    return PostgresDatabase(pool, place.shown)


def _unspeakable(bound: Row) -> bool:
    """PostgreSQL keeps no text with U+0000, so what asks for one finds nothing."""
    return any(type(value) is str and _NUL in value for value in bound)


def _is_open(connection: Any) -> bool:  # noqa: ANN401
    """False also for one that the pool has taken back since the server ended it."""
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:
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
