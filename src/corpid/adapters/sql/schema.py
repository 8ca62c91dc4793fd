"""The schema of a database: made and changed by Alembic migrations inside this package, checked at start.

A database is a SQLite file, given as its path, or PostgreSQL, given as its address.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from corpid.adapters.sql import sqlite_schema
from corpid.adapters.sql.postgresql_address import address
from corpid.adapters.sql.schema_errors import (
    DatabaseForgetful,
    DatabaseUnreachable,
    SchemaError,
    SchemaNewer,
    SchemaOlder,
)
from corpid.adapters.sql.sqlite_schema import LOCK_NAME

if TYPE_CHECKING:
    from collections.abc import Callable

    import sqlalchemy as sa

__all__ = [
    "LOCK_NAME", "DatabaseForgetful", "DatabaseUnreachable", "SchemaError", "SchemaNewer", "SchemaOlder",
    "check", "migrate", "migrate_url",
]  # fmt: skip

_SQLITE: Final = "sqlite:///"
_LOCATION: Final = "corpid.adapters.sql:migrations"


def migrate(database: Path | str) -> None:
    """Bring a database to this version's schema; a SQLite file is made (mode 0600) if need be.

    One transaction: an interrupted migration leaves the schema as it was. Processes that migrate at once
    wait for one another. Raises SchemaNewer, DatabaseUnreachable, DatabaseForgetful. Source: DESIGN "Parts we take"
    """

    def upgrade(connection: sa.Connection) -> None:
        _refuse_newer(connection, _shown(database))
        configuration = _configuration()
        configuration.attributes["connection"] = connection
        command.upgrade(configuration, "head")

    _inside(database, upgrade, change=True)


async def migrate_url(url: str) -> str:
    """`migrate` for a setting's `sqlite:///path` or `postgresql://…`, in a thread; the database's name without
    its secrets. Raises what `migrate` raises. Source: DESIGN "Parts we take"
    """
    database = Path(url.removeprefix(_SQLITE)) if url.startswith(_SQLITE) else url
    await asyncio.to_thread(migrate, database)
    return _shown(database)


def check(database: Path | str) -> None:
    """Raise SchemaOlder, SchemaNewer, DatabaseUnreachable or DatabaseForgetful unless the database has this
    version's schema."""

    def look(connection: sa.Connection) -> None:
        shown = _shown(database)
        if _refuse_newer(connection, shown) != _scripts().get_current_head():
            raise SchemaOlder(f"the database {shown} has an older schema than this CorpID needs: run `corpid migrate`")

    _inside(database, look, change=False)


def _refuse_newer(connection: sa.Connection, shown: str) -> str | None:
    revision = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in _scripts().walk_revisions()}
    if revision is not None and revision not in known:
        raise SchemaNewer(
            f"the database {shown} was migrated by a newer CorpID (its schema is {revision!r}): "
            "run that version, or restore a backup from before the migration"
        )
    return revision


def _inside(database: Path | str, work: Callable[[sa.Connection], None], *, change: bool) -> None:
    if isinstance(database, Path):
        sqlite_schema.inside(database, work, change=change)
        return
    # The driver is loaded by those who use it.
    from corpid.adapters.sql import postgresql_schema  # noqa: PLC0415

    postgresql_schema.inside(database, work, change=change)


def _shown(database: Path | str) -> str:
    """A database's name without its secrets."""
    return str(database) if isinstance(database, Path) else address(database).shown


def _configuration() -> Config:
    configuration = Config()
    configuration.set_main_option("script_location", _LOCATION)
    return configuration


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_configuration())
