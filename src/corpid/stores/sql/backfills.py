"""Backfills: rows updated in small batches while servers run.

How far it came is kept in the database: who stops a fill, or loses it to a crash, goes on from there.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.stores.sql.migration_target import MigrationStopped

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from corpid.stores.sql.migration_plan import Backfill, Step
    from corpid.stores.sql.migration_target import MigrationTarget

BATCH: Final = 1000
"""rows that are walked in one transaction"""
_TOLD_SECONDS: Final = 2.0
"""between two words of progress"""
_NUMBERED: Final = "SELECT max({key}), count(*) FROM (SELECT {key} FROM {table} WHERE {key} > :after ORDER BY {key} LIMIT {batch}) batch"
_LEFT: Final = "SELECT count(*) FROM {table} WHERE {key} > :after"
_GET: Final = sa.text("SELECT value FROM deployment WHERE name = :name")
_PUT: Final = sa.text(
    "INSERT INTO deployment (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_REMOVE: Final = sa.text("DELETE FROM deployment WHERE name = :name")


def get(connection: sa.Connection, name: str) -> str | None:
    """A value of the deployment table, inside a transaction."""
    value: str | None = connection.scalar(_GET, {"name": name})
    return value


def put(connection: sa.Connection, name: str, value: str) -> None:
    """Write a value of the deployment table, inside a transaction."""
    connection.execute(_PUT, {"name": name, "value": value})


def rows_left(connection: sa.Connection, step: Step) -> int:
    """The number of rows a backfill has left; 0 without its table."""
    fill = _fill(step)
    if not sa.inspect(connection).has_table(fill.table):
        return 0
    left: int = connection.scalar(_statement(_LEFT, fill), {"after": _reached(connection, step)}) or 0
    return left


def run(place: MigrationTarget, step: Step, report: Callable[[str], None], stop: threading.Event) -> None:
    """Walk every row that is left.

    Raises MigrationStopped between two batches, and SchemaError.
    """
    total, done = place.read(lambda connection: rows_left(connection, step)), 0
    began = last = time.monotonic()
    while walked := place.transact(lambda connection: _batch(connection, step)):
        done += walked
        if stop.is_set():
            raise MigrationStopped(
                f"stopped after {done:,} of about {total:,} rows of {_fill(step).table}, which stay done: "
                "`corpid migrate` goes on from there"
            )
        if time.monotonic() - last > _TOLD_SECONDS:
            last = time.monotonic()
            left = max(0, total - done) * (last - began) / done
            report(f"{step.revision}: {done:,} of about {total:,} rows, about {left:,.0f} seconds left")
    report(f"{step.revision}: {done:,} rows of {_fill(step).table} walked")


def forget(connection: sa.Connection, step: Step) -> None:
    """Let the next walk begin at the first row."""
    connection.execute(_REMOVE, {"name": _name(step)})


def _batch(connection: sa.Connection, step: Step) -> int:
    """Update the next rows; returns the number of rows read."""
    fill, after = _fill(step), _reached(connection, step)
    end, rows = connection.execute(_statement(_NUMBERED, fill), {"after": after}).one()
    if rows:
        connection.execute(sa.text(fill.statement), {"after": after, "end": end})
        put(connection, _name(step), str(end))
    return int(rows)


def _reached(connection: sa.Connection, step: Step) -> str | int:
    fill = _fill(step)
    value = get(connection, _name(step))
    return fill.first if value is None else type(fill.first)(value)


def _statement(text: str, fill: Backfill) -> sa.TextClause:
    """A statement from its text.

    Names come from our own migrations, never from outside.
    """
    return sa.text(text.format(table=fill.table, key=fill.key, batch=BATCH))


def _name(step: Step) -> str:
    return f"fill_{step.revision}"


def _fill(step: Step) -> Backfill:
    assert step.fill is not None, f"the migration {step.revision} is a fill and says not of what"  # noqa: S101
    return step.fill
