"""The database schema: made as declared, migrated by Alembic, checked at start.

A database is a SQLite file, given as its path, or PostgreSQL, given as its address. Everything here blocks.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import sqlalchemy as sa

from corpid.stores.sql.columns import INDEXES, METADATA
from corpid.stores.sql.migration import (
    CONTRACT,
    EXPAND,
    FILL,
    OLDEST,
    Backfill,
    Migration,
    MigrationStopped,
    MigrationTarget,
    SchemaNewer,
    SchemaOlder,
    SchemaTooOld,
    choose_outstanding,
    find_fills_before,
    find_pending,
    find_serves_since,
    is_enough,
    is_last,
    list_known,
    read_steps,
)
from corpid.stores.sql.sqlite import SqliteTarget, read_revision

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from alembic.operations import Operations


_SQLITE: Final = "sqlite:///"
_REVISION: Final = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Alembic's own table: the last migration that was done"""
_SERVES_SINCE: Final = "schema_serves_since"
"""the oldest version that may run on this schema, named by its last migration"""
_CREATION: Final = "Every table of an empty database"


class PlannedMigration(msgspec.Struct, frozen=True, kw_only=True):
    revision: str
    title: str
    phase: str
    locks: str
    concurrently: bool
    """servers go on while it works, also if that takes long"""
    rows: int | None
    """how many rows a fill has to walk"""
    seconds: int | None
    """the approximate duration, from earlier measurements"""


class MigrationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of `corpid migrate`, and those left to `corpid migrate --contract`."""

    database: str
    schema: str | None
    """the last migration that was done; None for an empty database"""
    now: tuple[PlannedMigration, ...]
    later: tuple[PlannedMigration, ...]


class _SchemaState(msgspec.Struct, frozen=True):
    """The migration state of a database."""

    revision: str | None
    serves_since: str | None
    """not read where the last migration of this version was done"""


def find_head() -> str:
    """This version's last migration."""
    return read_steps()[-1].revision


def find_target(url: str) -> Path | str:
    """The database of a setting's `sqlite:///path` or `postgresql://…`."""
    return Path(url.removeprefix(_SQLITE)) if url.startswith(_SQLITE) else url


def migrate(
    database: Path | str,
    *,
    through: str = FILL,
    report: Callable[[str], None] = lambda _: None,
    stop: threading.Event | None = None,
) -> str:
    """Bring a database to this version's schema.

    A SQLite file is made (mode 0600) if need be. An empty database gets every table as it is declared, in one
    transaction. Its name.

    `through` says how far: EXPAND what this version cannot run without, FILL also rows, CONTRACT everything, which
    needs all servers of the version before gone. `report` gets sentences about progress; `stop`, when it is set,
    ends a fill after its batch. Each step is one transaction, so an interrupted one leaves the schema as it was;
    a backfill continues at its last position. Processes that migrate at once wait for one another.

    Raises SchemaError. docs/decisions/0009, 0043
    """
    if _is_current_file(database):
        return str(database)
    stop = stop or threading.Event()
    with _open_target(database, create=True) as place, place.hold_lock(report, stop):
        state = place.read(_schema_state)
        if is_last(state.revision):
            return place.display_name
        every = read_steps()
        if state.revision is None:
            place.refuse_pooler()
            place.transact(partial(_create, every=every))
            report(f"{every[-1].revision}: done ({EXPAND}: {_CREATION})")
            return place.display_name
        if _is_later(state.revision, state.serves_since, every, place.display_name):
            return place.display_name
        walked: set[str] = set()
        missing = choose_outstanding(every, state.revision, through=through)
        if missing:
            place.refuse_pooler()
        for step in missing:
            if step.phase == CONTRACT:
                # Refuse while older servers run, and fill their rows. They may have written rows after the backfill.
                place.refuse_served([OLDEST, *(each.revision for each in every[: every.index(step)])])
                for fill in find_fills_before(every, step):
                    if fill.revision not in walked:
                        _walk(place, fill, report, stop)
                        place.transact(partial(_forget_position, step=fill))
            _carry_out(place, every, step, report, stop)
            walked.add(step.revision)
        return place.display_name


def check(database: Path | str) -> None:
    """Raise SchemaError unless this version may run on the schema.

    SchemaOlder, SchemaNewer or another one. docs/decisions/0009
    """
    if _is_current_file(database):
        return
    with _open_target(database, create=False) as place:
        state = place.read(_schema_state)
        if is_last(state.revision):
            return
        every = read_steps()
        if state.revision is not None and (
            _is_later(state.revision, state.serves_since, every, place.display_name)
            or is_enough(find_pending(every, state.revision))
        ):
            return
        raise SchemaOlder(
            f"the database {place.display_name} has an older schema than this CorpID needs: run `corpid migrate` "
            "(`corpid migrate --plan` says what that will do)"
        )


def plan(database: Path | str) -> MigrationPlan:
    """The pending steps; nothing is changed. Raises SchemaError. docs/decisions/0009"""
    every = read_steps()
    with _open_target(database, create=False) as place:
        state = place.read(_schema_state)
        if state.revision is None:
            return MigrationPlan(database=place.display_name, schema=None, now=(_plan_creation(every),), later=())
        if _is_later(state.revision, state.serves_since, every, place.display_name):
            return MigrationPlan(database=place.display_name, schema=state.revision, now=(), later=())
        lacking = find_pending(every, state.revision)
        now = choose_outstanding(every, state.revision, through=FILL)
        planned = tuple(place.read(lambda connection: [_describe_step(connection, step) for step in lacking]))
    return MigrationPlan(
        database=place.display_name, schema=state.revision, now=planned[: len(now)], later=planned[len(now) :]
    )


def _plan_creation(every: Sequence[Migration]) -> PlannedMigration:
    return PlannedMigration(
        revision=every[-1].revision,
        title=_CREATION,
        phase=EXPAND,
        locks="nothing: there is nobody yet",
        concurrently=False,
        rows=None,
        seconds=None,
    )


def _describe_step(connection: sa.Connection, step: Migration) -> PlannedMigration:
    rows = _count_rows_left(connection, step) if step.fill else None
    return PlannedMigration(
        revision=step.revision,
        title=step.title,
        phase=step.phase,
        locks=step.locks,
        concurrently=step.concurrently,
        rows=rows,
        seconds=1 + rows // step.fill.rows_per_second if step.fill and rows is not None else None,
    )


def _carry_out(
    place: MigrationTarget,
    every: Sequence[Migration],
    step: Migration,
    report: Callable[[str], None],
    stop: threading.Event,
) -> None:
    """One migration, and the note that it was done."""
    if stop.is_set():
        raise MigrationStopped(f"stopped before the migration {step.revision}: `corpid migrate` goes on with it")
    if step.fill is not None:
        _walk(place, step, report, stop)
    (place.run_outside_transaction if step.concurrently else place.transact)(
        lambda connection: _upgrade(connection, every, step)
    )
    report(f"{step.revision}: done ({step.phase}: {step.title})")


def _create(connection: sa.Connection, every: Sequence[Migration]) -> None:
    """Make every table with its triggers, and note this version's last migration."""
    # A server on a database that is there starts sooner without these. Imported, they are in METADATA.
    from corpid.stores.sql import tables, triggers  # noqa: F401, PLC0415

    dialect = connection.dialect.name
    for table in METADATA.sorted_tables:
        connection.execute(sa.schema.CreateTable(table))
    for index in INDEXES:
        index.dialect_options[dialect]["where"] = index.dialect_options["sqlite"]["where"]
        index.create(connection, checkfirst=False)
    for statement in triggers.write_triggers(dialect):
        connection.exec_driver_sql(statement)
    _note_done(connection, every, every[-1].revision)


def _operations(connection: sa.Connection) -> Operations:
    # A server that has nothing to migrate starts sooner without these.
    from alembic.operations import Operations  # noqa: PLC0415
    from alembic.runtime.migration import MigrationContext  # noqa: PLC0415

    return Operations(MigrationContext.configure(connection, opts={"transactional_ddl": True}))


def _upgrade(connection: sa.Connection, every: Sequence[Migration], step: Migration) -> None:
    if step.upgrade is not None:
        step.upgrade(_operations(connection))
    _note_done(connection, every, step.revision)
    if step.fill is not None:
        _forget_position(connection, step)


def _note_done(connection: sa.Connection, every: Sequence[Migration], revision: str) -> None:
    """Write the last migration, and the oldest version that may run now."""
    _REVISION.create(connection, checkfirst=True)
    # One statement: outside of a transaction a process may die between two.
    if not connection.execute(_REVISION.update().values(version_num=revision)).rowcount:
        connection.execute(_REVISION.insert().values(version_num=revision))
    _put_value(connection, _SERVES_SINCE, find_serves_since(every, revision))


def _is_current_file(database: Path | str) -> bool:
    """Return whether a SQLite file is up to date."""
    return isinstance(database, Path) and is_last(read_revision(database))


def _schema_state(connection: sa.Connection) -> _SchemaState:
    tables = sa.inspect(connection)
    revision = connection.scalars(sa.select(_REVISION)).one_or_none() if tables.has_table(_REVISION.name) else None
    if is_last(revision):
        return _SchemaState(revision, None)  # who starts has nothing more to ask
    since = _read_value(connection, _SERVES_SINCE) if tables.has_table("deployment") else None
    return _SchemaState(revision, since)


def _is_later(revision: str, serves_since: str | None, every: Sequence[Migration], shown: str) -> bool:
    """Return whether a compatible newer version has migrated the database.

    Raises SchemaNewer for an incompatible one, and SchemaTooOld.
    """
    known = list_known(every)
    if revision in known:
        return False
    if revision < OLDEST:
        raise SchemaTooOld(
            f"the database {shown} has the schema {revision!r}, which only states of CorpID before 0.1.0 made: run "
            "`corpid migrate` of commit 4af0316b on it first, then use this version"
        )
    if serves_since not in known:
        raise SchemaNewer(
            f"the database {shown} was migrated by a newer CorpID (its schema is {revision!r}), and this "
            "version can use it no longer: run that version, or restore a backup from before the migration"
        )
    return True


@contextmanager
def _open_target(database: Path | str, *, create: bool) -> Iterator[MigrationTarget]:
    if isinstance(database, Path):
        yield SqliteTarget(database, create=create)
        return
    # The driver is loaded by those who use it.
    from corpid.stores.sql import postgresql_schema  # noqa: PLC0415

    with postgresql_schema.open_target(database) as place:
        yield place


# Backfills: rows updated in small batches while servers run. How far it came is kept in the database: who stops one, or
# loses it to a crash, goes on from there.

_BATCH: Final = 1000
"""rows that are walked in one transaction"""
_LOG_SECONDS: Final = 2.0
"""between two words of progress"""
_NUMBERED: Final = "SELECT max({key}), count(*) FROM (SELECT {key} FROM {table} WHERE {key} > :after ORDER BY {key} LIMIT {batch}) batch"
_LEFT: Final = "SELECT count(*) FROM {table} WHERE {key} > :after"
_GET_VALUE: Final = sa.text("SELECT value FROM deployment WHERE name = :name")
_PUT_VALUE: Final = sa.text(
    "INSERT INTO deployment (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_REMOVE_VALUE: Final = sa.text("DELETE FROM deployment WHERE name = :name")


def _read_value(connection: sa.Connection, name: str) -> str | None:
    """A value of the deployment table, inside a transaction."""
    value: str | None = connection.scalar(_GET_VALUE, {"name": name})
    return value


def _put_value(connection: sa.Connection, name: str, value: str) -> None:
    """Write a value of the deployment table, inside a transaction."""
    connection.execute(_PUT_VALUE, {"name": name, "value": value})


def _count_rows_left(connection: sa.Connection, step: Migration) -> int:
    """The number of rows a backfill has left; 0 without its table."""
    fill = _find_fill(step)
    if not sa.inspect(connection).has_table(fill.table):
        return 0
    left: int = connection.scalar(_format_statement(_LEFT, fill), {"after": _read_position(connection, step)}) or 0
    return left


def _walk(place: MigrationTarget, step: Migration, report: Callable[[str], None], stop: threading.Event) -> None:
    """Walk every row that is left.

    Raises MigrationStopped between two batches, and SchemaError.
    """
    total, done = place.read(lambda connection: _count_rows_left(connection, step)), 0
    began = last = time.monotonic()
    while walked := place.transact(lambda connection: _fill_batch(connection, step)):
        done += walked
        if stop.is_set():
            raise MigrationStopped(
                f"stopped after {done:,} of about {total:,} rows of {_find_fill(step).table}, which stay done: "
                "`corpid migrate` goes on from there"
            )
        if time.monotonic() - last > _LOG_SECONDS:
            last = time.monotonic()
            left = max(0, total - done) * (last - began) / done
            report(f"{step.revision}: {done:,} of about {total:,} rows, about {left:,.0f} seconds left")
    report(f"{step.revision}: {done:,} rows of {_find_fill(step).table} walked")


def _forget_position(connection: sa.Connection, step: Migration) -> None:
    """Let the next walk begin at the first row."""
    connection.execute(_REMOVE_VALUE, {"name": _name_position(step)})


def _fill_batch(connection: sa.Connection, step: Migration) -> int:
    """Update the next rows; returns the number of rows read."""
    fill, after = _find_fill(step), _read_position(connection, step)
    end, rows = connection.execute(_format_statement(_NUMBERED, fill), {"after": after}).one()
    if rows:
        part = {"after": after, "end": end}
        if callable(fill.statement):
            fill.statement(connection, part)
        else:
            connection.execute(sa.text(fill.statement), part)
        _put_value(connection, _name_position(step), str(end))
    return int(rows)


def _read_position(connection: sa.Connection, step: Migration) -> str | int:
    fill = _find_fill(step)
    value = _read_value(connection, _name_position(step))
    return fill.first if value is None else type(fill.first)(value)


def _format_statement(text: str, fill: Backfill) -> sa.TextClause:
    """A statement from its text.

    Names come from our own migrations, never from outside.
    """
    return sa.text(text.format(table=fill.table, key=fill.key, batch=_BATCH))


def _name_position(step: Migration) -> str:
    return f"fill_{step.revision}"


def _find_fill(step: Migration) -> Backfill:
    assert step.fill is not None, f"the migration {step.revision} is a fill and says not of what"  # noqa: S101
    return step.fill
