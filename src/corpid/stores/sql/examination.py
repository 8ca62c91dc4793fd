"""Examination of a database for operators: version, schema, ages of keys.

Nothing is changed, and no secret is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import sqlalchemy as sa

from corpid.rules.oauth.records import Client
from corpid.rules.server_processes import ServerProcess
from corpid.stores.sql import schema, tables
from corpid.stores.sql.clients import CLIENTS
from corpid.stores.sql.columns import columns
from corpid.stores.sql.database_identity import read_refusal
from corpid.stores.sql.deployment import PROCESSES, sort_processes
from corpid.stores.sql.members import select_waiting_invitations
from corpid.stores.sql.migration import MigrationTarget, SchemaOlder
from corpid.stores.sql.sqlite import SqliteTarget

if TYPE_CHECKING:
    from corpid.stores import Clock

_CLOCK: Final = sa.text("SELECT extract(epoch FROM clock_timestamp())")
_LIMIT: Final = sa.text("SELECT reset_val FROM pg_settings WHERE name = 'statement_timeout'")
"""of the role or the database, not of this transaction"""


class KeyTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Creation, activation and retirement of a signing key; epoch seconds."""

    kid: str
    created_at: int
    active_from: int
    retired_at: int | None


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    place: str
    """its address without secrets"""
    engine: str
    version: str
    older: str
    """why this version cannot run on its schema; empty if it can"""
    unconfirmed_restore: str
    """why no server starts on it, after a restore or a move (docs/decisions/0028); empty if they do"""
    now: tuple[str, ...]
    """migrations that `corpid migrate` would do"""
    later: tuple[str, ...]
    """migrations that wait for `corpid migrate --contract`"""
    keys: tuple[KeyTimes, ...]
    pkce_optional: tuple[Client, ...]
    """the enabled clients that are registered with pkce optional, in the order of their identifiers"""
    issuers: tuple[tuple[str, tuple[str, ...]], ...]
    """of each client that names issuers its identifier and their ids"""
    unsealed_since: int | None
    """the moment of the oldest entry of the audit without a seal, epoch seconds; None if there is none"""
    emails: tuple[int, int]
    """the number of invitations whose e-mail waits, and the moment of the oldest one, epoch seconds"""
    processes: tuple[ServerProcess, ...]
    """those that are registered as serving"""
    apart: float
    """seconds by which its clock differs from this machine's"""
    is_pooled: bool
    """whether a pooler answers"""
    statement_milliseconds: int
    """the role's time limit for statements; 0: none"""


def examine(url: str, *, clock: Clock) -> Examination:
    """Look at the database of a setting's `sqlite:///path` or `postgresql://…`. Raises SchemaError.

    Blocks, and belongs to a thread in which no event loop runs.
    """
    database = schema.find_target(url)
    plan = schema.plan(database)
    older = _older(database)
    if isinstance(database, Path):
        return _examined(SqliteTarget(database, create=False), plan, older, clock, is_pooled=False)
    # The driver is loaded by those who use it.
    from corpid.stores.sql import postgresql_schema  # noqa: PLC0415

    with postgresql_schema.open_target(database) as place:
        return _examined(place, plan, older, clock, is_pooled=place.is_pooled())


def _older(database: Path | str) -> str:
    try:
        schema.check(database)
    except SchemaOlder as error:
        return str(error)
    return ""


def _examined(
    place: MigrationTarget, plan: schema.MigrationPlan, older: str, clock: Clock, *, is_pooled: bool
) -> Examination:
    engine, version, at = place.read(_engine)
    clients = place.read(_clients)
    return Examination(
        place=place.display_name,
        engine=engine,
        version=version,
        older=older,
        unconfirmed_restore=place.read(lambda connection: read_refusal(connection, place.display_name)),
        now=tuple(step.title for step in plan.now),
        later=tuple(step.title for step in plan.later),
        keys=tuple(place.read(_keys)),
        pkce_optional=tuple(client for client in clients if client.enabled and client.pkce == "optional"),
        issuers=tuple((client.client_id, client.issuers) for client in clients if client.issuers),
        unsealed_since=place.read(_unsealed_since),
        emails=(0, 0) if older else place.read(_emails),
        processes=tuple(place.read(_processes)),
        apart=0.0 if at is None else abs(at - clock()),
        is_pooled=is_pooled,
        statement_milliseconds=int(place.read(lambda connection: connection.scalar(_LIMIT))) if is_pooled else 0,
    )


def _engine(connection: sa.Connection) -> tuple[str, str, float | None]:
    if connection.dialect.name == "sqlite":
        return "SQLite", str(connection.scalar(sa.text("SELECT sqlite_version()"))), None
    version = str(connection.scalar(sa.text("SHOW server_version")))
    return "PostgreSQL", version.partition(" ")[0], float(connection.scalar(_CLOCK) or 0)


def _keys(connection: sa.Connection) -> list[KeyTimes]:
    """None if the schema is still to be made."""
    if not sa.inspect(connection).has_table(tables.keys.name):
        return []
    columns = (tables.keys.c[name] for name in ("kid", "created_at", "active_from", "retired_at"))
    found = sa.select(*columns).where(tables.keys.c.use == "sig", tables.keys.c.revoked_at.is_(None))
    return [KeyTimes(**row._mapping) for row in connection.execute(found)]  # noqa: SLF001 - its public name


def _unsealed_since(connection: sa.Connection) -> int | None:
    if not sa.inspect(connection).has_table(tables.audit_seals.name):
        return None
    sealed = sa.select(sa.func.coalesce(sa.func.max(tables.audit_seals.c.last), 0)).scalar_subquery()
    oldest = sa.select(tables.audit.c.at).where(tables.audit.c.number > sealed).order_by(tables.audit.c.number)
    return connection.scalar(oldest.limit(1))


def _emails(connection: sa.Connection) -> tuple[int, int]:
    count, oldest = connection.execute(select_waiting_invitations()).one()
    return int(count), int(oldest)


def _processes(connection: sa.Connection) -> list[ServerProcess]:
    if not sa.inspect(connection).has_table(tables.server_processes.name):
        return []
    found = sort_processes(sa.select(*columns(PROCESSES.table, PROCESSES)))
    return [PROCESSES.decode(tuple(row)) for row in connection.execute(found)]


def _clients(connection: sa.Connection) -> list[Client]:
    if not sa.inspect(connection).has_table(tables.clients.name):
        return []
    found = sa.select(*(tables.clients.c[name] for name in CLIENTS.columns)).order_by(tables.clients.c.client_id)
    return [CLIENTS.decode(tuple(row)) for row in connection.execute(found)]
