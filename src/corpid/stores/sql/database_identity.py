"""The identity of a PostgreSQL database.

That is its server, its place there and its tables. The deployment table keeps a note of it. A copy that pg_restore made
brings the note of the original, so the two differ: another system identifier means another server, another OID another
database or tables that were created again. A standby has the identity of its primary. docs/decisions/0028
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.stores.sql.statements import Database, Statement

if TYPE_CHECKING:
    from pathlib import Path


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
    (with_system,) = await database.row(Statement(sa.text(MAY_READ_SYSTEM)), {}) or (False,)
    (found,) = await database.row(Statement(sa.text(f"SELECT {identity_expression(with_system=with_system)}")), {}) or (
        "",
    )
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
