"""A version of CorpID after this one: the same code with four more migrations, one for each way in which there are any.

As a program it is `corpid` of that version: `python -m tests.upgrades.later FOLDER serve`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from corpid import cli
from corpid.stores.sql import migration_plan, schema

MIGRATIONS: Final = Path(__file__).parent / "migrations"


def written(folder: Path) -> str:
    """The migrations, made to follow this version's last one; their folder."""
    for file in sorted(MIGRATIONS.glob("*.py")):
        text = file.read_text(encoding="utf-8").replace('"head"', repr(schema.head()))
        (folder / file.name).write_text(text, encoding="utf-8")
    return str(folder)


if __name__ == "__main__":
    migration_plan.LOCATIONS.append(sys.argv.pop(1))
    cli.main()
