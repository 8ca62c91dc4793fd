"""`corpid migrate`: bring the database to this version."""

from __future__ import annotations

from corpid import engines, settings
from corpid.cli import output


def migrate() -> None:
    """Bring the database's schema up to this version. The default database does that by itself at start."""
    name = output.run(_migrate())
    output.say(f"The database {name} has the schema of this version.")


async def _migrate() -> str:
    return await engines.migrate(settings.load())
