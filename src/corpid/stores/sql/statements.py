"""Statements, transactions, and the interface of databases.

A statement stands in the module of its part, in SQLAlchemy Core. It is built and compiled to text when it is first used,
so that a command makes the few that it needs; from then on a request costs the driver's own time only. `insert` is
SQLite's construct, which PostgreSQL's compiler renders as well, so one statement serves both. The opposite would load
PostgreSQL's dialects for SQLite, a tenth of a command's time.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache, lru_cache, partial, wraps
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self, TypeAlias, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.dialects.sqlite.dml import OnConflictDoNothing, OnConflictDoUpdate
from sqlalchemy.ext.compiler import compiles

from corpid.rules.failures import StoreUnavailable
from corpid.rules.oauth.errors import OAuthError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from sqlalchemy.sql.compiler import SQLCompiler

__all__ = ["Database", "Query", "Row", "Statement", "by_shape", "insert", "parameters", "upsert"]

Q = TypeVar("Q")
Row: TypeAlias = tuple[Any, ...]
Build: TypeAlias = "sa.Executable | Callable[[], sa.Executable]"
Bind: TypeAlias = "Callable[[Mapping[str, Any]], Row]"
_SHAPES: Final = 1024
"""statements of one kind that are kept: clients of the provisioning API combine filters"""


class Statement:
    """A statement, built and compiled when a dialect first needs it."""

    def __init__(self, build: Build) -> None:
        self.compiled: Final[Callable[[sa.Dialect], tuple[str, Bind]]] = cache(partial(_compile, build))
        """the text, and what orders values as the text has its parameters"""


class Query(Statement, Generic[Q]):
    """A statement, each of whose rows is a record."""

    def __init__(self, build: Build, decode: Callable[[Row], Q]) -> None:
        super().__init__(build)
        self._decode: Final = decode

    async def one(self, database: Database, **values: object) -> Q | None:
        """The only record, None if there is none. Raises StoreUnavailable."""
        row = await database.row(self, values)
        return None if row is None else self._decode(row)

    async def every(self, database: Database, **values: object) -> list[Q]:
        """All records, in the order of the statement. Raises StoreUnavailable."""
        return list(map(self._decode, await database.rows(self, values)))


def query(decode: Callable[[Row], Q]) -> Callable[[Callable[[], sa.Executable]], Query[Q]]:
    """Decorate what builds a query with what decodes its rows."""
    return lambda build: Query(build, decode)


def by_shape(build: Callable[..., sa.Executable]) -> Callable[..., Statement]:
    """Decorate what builds a statement for each shape of a question."""
    return lru_cache(_SHAPES)(wraps(build)(lambda *shape: Statement(partial(build, *shape))))


def query_by_shape(decode: Callable[[Row], Q]) -> Callable[[Callable[..., sa.Executable]], Callable[..., Query[Q]]]:
    """As `query`, for each shape of a question."""
    return lambda build: lru_cache(_SHAPES)(wraps(build)(lambda *shape: Query(partial(build, *shape), decode)))


def _compile(build: Build, dialect: sa.Dialect) -> tuple[str, Bind]:
    built = build if isinstance(build, sa.Executable) else build()
    compiled = cast("SQLCompiler", cast("sa.ClauseElement", built).compile(dialect=dialect))
    constants = {name: value for name, value in compiled.params.items() if value is not None}
    return compiled.string, _binder(tuple(compiled.positiontup or ()), constants)


class _Now(sa.ColumnElement[int]):
    inherit_cache = True
    type = sa.BigInteger()


NOW: Final = _Now()
"""this moment in epoch milliseconds: by the engine's clock, or the parameter `now` (D49)"""
_GIVEN: Final = sa.bindparam("now", type_=sa.BigInteger)
# Not EXTRACT: pg_stat_statements writes its field as a parameter, which the grammar refuses in a PREPARE.
_BY_CLOCK: Final = sa.cast(
    sa.func.floor(sa.func.date_part("epoch", sa.func.clock_timestamp()) * sa.literal_column("1000")), sa.BigInteger
)
_ADDRESS: Final[sa.ColumnElement[Any]] = sa.literal_column("ctid")


class IsAmong(sa.ColumnElement[bool]):
    """A condition: the row is among the few that `chosen` selects.

    The others are not read.
    """

    inherit_cache = False

    def __init__(self, table: sa.Table, chosen: sa.Select[Any]) -> None:
        self.table, self.chosen = table, chosen


@compiles(_Now, "sqlite")
def _now_of_sqlite(_: _Now, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401
    return compiler.process(_GIVEN, **options)


@compiles(_Now, "postgresql")
def _now_of_postgresql(_: _Now, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401
    return compiler.process(_BY_CLOCK, **options)


@compiles(IsAmong, "sqlite")
def _among_of_sqlite(among: IsAmong, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401
    """By primary key."""
    keys = list(among.table.primary_key)
    return compiler.process(sa.tuple_(*keys).in_(among.chosen.with_only_columns(*keys)), **options)


@compiles(IsAmong, "postgresql")
def _among_of_postgresql(among: IsAmong, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401
    """By row addresses: a join would make the planner guess their number."""
    addresses = among.chosen.with_only_columns(_ADDRESS, maintain_column_froms=True).scalar_subquery()
    return compiler.process(sa.any_(sa.func.array(addresses)) == _ADDRESS, **options)


class Database(Protocol):
    """The interface of a database for the stores of this package.

    All raise StoreUnavailable. Writes raise Conflict for what a constraint refuses.
    """

    @property
    def dialect(self) -> sa.Dialect: ...

    @property
    def writes_in_queries(self) -> bool:
        """True if a statement may contain another that writes."""

    @property
    def has_clock(self) -> bool:
        """True if `NOW` is the engine's own."""

    @property
    def is_pooled(self) -> bool:
        """True if the first statement showed a pooler in between."""

    @property
    def connections_in_use(self) -> int:
        """Connections that are busy now; 0 if there is but one."""

    async def writers(self, lock: int) -> frozenset[str]:
        """Names of the transactions that have this advisory lock now.

        None if there is only one writer, whose rows become visible in the order of their numbers.
        """

    async def outlive_writers(self, lock: int) -> None:
        """Return when every transaction that has this advisory lock now has ended.

        At once if there is only one writer, whose rows become visible in the order of their numbers.
        """

    async def row(self, statement: Statement, values: Mapping[str, Any]) -> Row | None:
        """The only row, or None.

        For look-ups by a unique key and for RETURNING.
        """

    async def rows(self, statement: Statement, values: Mapping[str, Any]) -> list[Row]: ...

    async def run(self, statement: Statement, values: Mapping[str, Any]) -> int:
        """Execute a statement without result rows; returns the affected rows."""

    async def write(self, statement: Statement, values: Mapping[str, Any]) -> int:
        """As `run`, in a transaction of its own unless one is open.

        In this task, that is.
        """

    async def write_all(self, every: Sequence[Statement], values: Mapping[str, Any]) -> None:
        """As `write`, several statements with the same values in one transaction."""

    def transaction(self) -> Transaction:
        """Statements of this task that become true together.

        Joins a transaction that this task has open already. Commits when left normally or with an OAuthError, else
        rolls back.
        """

    async def begin(self) -> bool:
        """Begin a transaction for this task.

        False if it has one open, which is joined. Raises StoreUnavailable.
        """

    async def end(self, *, commit: bool) -> None:
        """End this task's transaction. Raises StoreUnavailable when it could not be."""

    def check(self) -> None:
        """Raise StoreUnavailable if the engine failed in the background."""

    async def close(self) -> None:
        """Let go of the database; nothing may be used afterwards."""


class Part:
    """The base of the registry's parts: methods on a database."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database


def _binder(names: tuple[str, ...], constants: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], Row]:
    if not names:
        return lambda _values: ()
    if len(names) == 1:
        (only,) = names
        return lambda values: (values[only] if only in values else constants[only],)
    getter = cast("Callable[[Mapping[str, Any]], Row]", itemgetter(*names))
    return (lambda values: getter({**constants, **values})) if constants else getter


@compiles(OnConflictDoNothing, "postgresql")
@compiles(OnConflictDoUpdate, "postgresql")
def _on_conflict(clause: Any, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401
    """ON CONFLICT for PostgreSQL, whose own construct can also name a constraint."""
    clause.constraint_target = None
    return cast("str", getattr(compiler, f"visit_{clause.__visit_name__}")(clause, **options))


def parameters(columns: tuple[str, ...]) -> dict[str, sa.BindParameter[Any]]:
    """A parameter of its own name for each column."""
    return {name: sa.bindparam(name) for name in columns}


def upsert(table: sa.Table, columns: tuple[str, ...], kept: Mapping[str, Any] | None = None) -> sa.Executable:
    """INSERT … ON CONFLICT on the primary key DO UPDATE.

    With a parameter for every column. `kept` replaces what a column is updated to. Rows that refer to this one stay as
    they are.
    """
    statement = insert(table).values(parameters(columns))
    keys = [column.name for column in table.primary_key]
    rest = {name: statement.excluded[name] for name in columns if name not in keys} | dict(kept or {})
    if not rest:
        return statement.on_conflict_do_nothing(index_elements=keys)
    return statement.on_conflict_do_update(index_elements=keys, set_=rest)


class Transaction:
    """Ends as Database.transaction says.

    What was spent stays spent when a flow refuses.
    """

    __slots__ = ("_database", "_outermost")

    def __init__(self, database: Database) -> None:
        self._database = database

    async def __aenter__(self) -> Self:
        self._outermost = await self._database.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._outermost:
            await end_transaction(self._database, error)


async def end_transaction(database: Database, error: BaseException | None) -> None:
    """End a transaction that was left with this error.

    What was spent stays spent when a flow refuses. Raises StoreUnavailable.
    """
    if error is None or isinstance(error, OAuthError):
        await database.end(commit=True)
    else:
        with suppress(StoreUnavailable):
            await database.end(commit=False)
