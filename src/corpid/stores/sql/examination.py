"""Examination of a database for operators: version, schema, ages of keys.

Nothing is changed, and no secret is read.

The identity of a PostgreSQL database.

That is its server, its place there and its tables. The deployment table keeps a note of it. A copy that pg_restore made
brings the note of the original, so the two differ: another system identifier means another server, another OID another
database or tables that were created again. A standby has the identity of its primary. docs/decisions/0028
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
from corpid.stores.sql.deployment import PROCESSES, select_processes
from corpid.stores.sql.members import select_waiting_invitations
from corpid.stores.sql.migration import SchemaOlder
from corpid.stores.sql.sqlite import SqliteTarget

if TYPE_CHECKING:
    from corpid.stores import Clock
    from corpid.stores.sql.migration import MigrationTarget
    from corpid.stores.sql.statements import Database

NOTED_AS: Final = "database_identity"
"""its name in the deployment table"""
_UNKNOWN: Final = "-"
"""in place of a system identifier that the role may not read"""
_DIFFERENCES: Final = ("another server", "another database of its server", "its tables were created again")
"""what another value means, in the order of the parts"""

MAY_READ_SYSTEM: Final = "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')"
"""Every role may, unless somebody revoked that."""
_SYSTEM: Final = "(SELECT CAST(system_identifier AS text) FROM pg_control_system())"
_HERE: Final = (
    "concat_ws(' ', {}, (SELECT oid FROM pg_database WHERE datname = current_database()), "
    "CAST(CAST('deployment' AS regclass) AS oid))"
)


def identity_expression(*, with_system: bool) -> str:
    return _HERE.format(_SYSTEM if with_system else f"'{_UNKNOWN}'")


def describe_differences(noted: str, found: str) -> tuple[str, ...]:
    """The parts that differ, in words.

    What is unknown differs from nothing.
    """
    parts = zip(noted.split(), found.split(), _DIFFERENCES, strict=False)
    return tuple(word for before, now, word in parts if before != now and _UNKNOWN not in {before, now})


def says_more(found: str, noted: str) -> bool:
    """Return whether the system identifier is known now, and was not."""
    return _UNKNOWN in noted.split() and _UNKNOWN not in found.split()


def explain_refusal(place: str, noted: str, found: str) -> str:
    """The reason to refuse a database; empty for the same one."""
    differing = describe_differences(noted, found)
    if not differing:
        return ""
    return (
        f"the database {place} is not the one that CorpID used last ({differing[0]}): if it was restored or moved, stop "
        "every server and run `corpid maintenance after-restore`, since what was used or ended after the backup "
        "would be valid again; otherwise correct database_url"
    )


async def find(database: Database) -> str:
    """The identity of the database of a connection. Raises StoreUnavailable."""
    (with_system,) = await database.row(database.prepare(sa.text(MAY_READ_SYSTEM)), {}) or (False,)
    (found,) = await database.row(
        database.prepare(sa.text(f"SELECT {identity_expression(with_system=with_system)}")), {}
    ) or ("",)
    return str(found)


def explain_unconfirmed(database: Path | str) -> str:
    """The reason why no server starts on a database.

    Empty if they do. Changes nothing, and blocks. Raises SchemaError.
    """
    if not isinstance(database, str):
        return ""
    # The driver is loaded by those who use it.
    from corpid.stores.sql import postgresql_schema  # noqa: PLC0415

    with postgresql_schema.open_target(database) as place:
        return place.read(lambda connection: read_refusal(connection, place.display_name))


def read_refusal(connection: sa.Connection, shown: str) -> str:
    """As `unconfirmed_reason`, inside a transaction."""
    if connection.dialect.name == "sqlite" or not sa.inspect(connection).has_table("deployment"):
        return ""
    noted = connection.scalar(sa.text("SELECT value FROM deployment WHERE name = :name"), {"name": NOTED_AS})
    if noted is None:
        return ""
    with_system = bool(connection.scalar(sa.text(MAY_READ_SYSTEM)))
    return explain_refusal(
        shown, noted, str(connection.scalar(sa.text(f"SELECT {identity_expression(with_system=with_system)}")))
    )


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
    return [PROCESSES.decode(tuple(row)) for row in connection.execute(select_processes())]


def _clients(connection: sa.Connection) -> list[Client]:
    if not sa.inspect(connection).has_table(tables.clients.name):
        return []
    found = sa.select(*(tables.clients.c[name] for name in CLIENTS.columns)).order_by(tables.clients.c.client_id)
    return [CLIENTS.decode(tuple(row)) for row in connection.execute(found)]
