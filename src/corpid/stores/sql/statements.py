"""Prepared statements, transactions, and the interface of databases.

A statement is written in SQLAlchemy Core. It is made and compiled to text when it is first used, so that a command
makes the few that it needs; from then on a request costs the driver's own time only. `insert` is
SQLite's construct, which PostgreSQL's compiler renders as well, so one statement serves both. The opposite would load
PostgreSQL's dialects for SQLite, a tenth of a command's time.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property, partial
from operator import itemgetter
from types import FunctionType, MethodType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias, cast

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.dialects.sqlite.dml import OnConflictDoNothing, OnConflictDoUpdate
from sqlalchemy.ext.compiler import compiles

from corpid.rules.failures import StoreUnavailable
from corpid.rules.oauth.errors import OAuthError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy.sql.compiler import SQLCompiler

__all__ = ["CompiledStatement", "Database", "Row", "Statement", "insert", "parameters", "upsert"]

Row: TypeAlias = tuple[Any, ...]


Statement: TypeAlias = "sa.Executable | Callable[[], sa.Executable]"
"""a statement, or a function that creates it on first use"""


class CompiledStatement:
    """A statement's text for one dialect, with positional values."""

    def __init__(self, statement: Statement, dialect: sa.Dialect) -> None:
        self._statement: Final = statement
        self._dialect: Final = dialect

    @cached_property
    def _compiled(self) -> tuple[str, Callable[[Mapping[str, Any]], Row]]:
        key = (_identify(self._statement), self._dialect.name)
        if key[0] is None:
            return _compile(self._statement, self._dialect)
        if key not in _COMPILED:
            _COMPILED[key] = _compile(self._statement, self._dialect)
        return _COMPILED[key]

    @cached_property
    def text(self) -> str:
        return self._compiled[0]

    @cached_property
    def bind(self) -> Callable[[Mapping[str, Any]], Row]:
        """Order values as the text has its parameters.

        Constants of the statement are bound with them.
        """
        return self._compiled[1]


_COMPILED: Final[dict[tuple[Any, str], tuple[str, Callable[[Mapping[str, Any]], Row]]]] = {}
"""what is the same in each registry of a process, by how it is built"""


def _identify(statement: Statement) -> tuple[Any, ...] | None:
    """The code that builds a statement, and its arguments.

    None if the statement may depend on more.

    The arguments of a `partial` have to be constants of the process, such as tables and names.
    """
    if isinstance(statement, partial) and not statement.keywords:
        parts = [_identify(each) if isinstance(each, FunctionType) else each for each in statement.args]
        return None if any(each is None for each in parts) else (statement.func, *parts)
    if isinstance(statement, FunctionType) and not statement.__closure__ and not statement.__defaults__:
        return (statement.__code__,)
    if isinstance(statement, MethodType):
        return statement.__func__, statement.__self__
    return None


def _compile(statement: Statement, dialect: sa.Dialect) -> tuple[str, Callable[[Mapping[str, Any]], Row]]:
    built = statement if isinstance(statement, sa.Executable) else statement()
    compiled = cast("SQLCompiler", cast("sa.ClauseElement", built).compile(dialect=dialect))
    constants = {name: value for name, value in compiled.params.items() if value is not None}
    return compiled.string, _binder(tuple(compiled.positiontup or ()), constants)


class Database(Protocol):
    """The interface of a database for the stores of this package.

    All raise StoreUnavailable. Writes raise Conflict for what a constraint refuses.
    """

    @property
    def now(self) -> sa.ColumnElement[int]:
        """This moment inside a statement, in epoch milliseconds.

        By the engine's clock, or the parameter `now`. Source: D49
        """

    @property
    def writes_in_queries(self) -> bool:
        """True if a statement may contain another that writes."""

    @property
    def has_clock(self) -> bool:
        """True if `now` is the engine's own."""

    @property
    def is_pooled(self) -> bool:
        """True if the first statement showed a pooler in between."""

    def is_among(self, table: sa.Table, chosen: sa.Select[Any]) -> sa.ColumnElement[bool]:
        """A condition: the row is among the few that `chosen` selects.

        The others are not read.
        """

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

    def prepare(self, statement: Statement) -> CompiledStatement:
        """A statement in this database's dialect.

        Made once per store, never per request; compiled once per process if only constants build it.
        """

    async def row(self, prepared: CompiledStatement, values: Mapping[str, Any]) -> Row | None:
        """The only row, or None.

        For look-ups by a unique key and for RETURNING.
        """

    async def rows(self, prepared: CompiledStatement, values: Mapping[str, Any]) -> list[Row]: ...

    async def run(self, prepared: CompiledStatement, values: Mapping[str, Any]) -> int:
        """Execute a statement without result rows; returns the affected rows."""

    async def write(self, prepared: CompiledStatement, values: Mapping[str, Any]) -> int:
        """As `run`, in a transaction of its own unless one is open.

        In this task, that is.
        """

    async def write_all(self, every: Sequence[CompiledStatement], values: Mapping[str, Any]) -> None:
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
