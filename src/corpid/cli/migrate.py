"""`corpid migrate`: bring the database to this version."""

from __future__ import annotations

import asyncio

from corpid import engines, settings
from corpid.cli import output


def migrate() -> None:
    """Bring the database's schema up to this version. The default database does that by itself at start."""
    output.run(_migrate())
    output.say("The database has the schema of this version.")


async def _migrate() -> None:
    await asyncio.to_thread(engines.migrate, settings.load())
