"""`corpid migrate`: bring the database to this version."""

from __future__ import annotations

from corpid import settings
from corpid.app import migrate_database
from corpid.cli import output


def migrate() -> None:
    """Bring the database's schema up to this version. The default database does that by itself at start."""
    path = output.run(_migrate())
    output.say(f"The database {path} has the schema of this version.")


async def _migrate() -> str:
    return str(migrate_database(settings.load()))
