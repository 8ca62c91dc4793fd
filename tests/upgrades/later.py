"""A version of CorpID after this one: the same code with four more migrations, one for each way in which there are any.

As a program it is `corpid` of that version: `python -m tests.upgrades.later serve`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from corpid import cli
from corpid.stores.sql import migration

MIGRATIONS: Final = str(Path(__file__).parent / "migrations")


if __name__ == "__main__":
    migration.LOCATIONS.append(MIGRATIONS)
    cli.main()
