"""Noticing that the machine went down, after which the last commits may be missing.

SQLite in WAL mode keeps every commit through the death of a process, but not through a power loss: what
came after the last checkpoint may be gone, and with it the memory of what was spent. So after the
machine has started anew the short-lived table is emptied, and the moment is remembered: what was issued
before it must be refused (DESIGN "What each engine promises").
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.adapters.sql.deployment import NamedValues
from corpid.adapters.sql.tables import transient

if TYPE_CHECKING:
    from corpid.adapters.sql.statements import Database

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_START: Final = "machine_start"
FORGOTTEN_AT: Final = "forgotten_at"
"""the name under which the moment is kept, epoch seconds"""


def machine_start() -> str:
    """What differs after every start of the machine; a system that does not say is taken never to lose power."""
    return _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else "not told"


async def forgotten_at(database: Database, *, start: str, now: float) -> float:
    """Empty the short-lived table if the machine was started since the database was last opened.

    Returns the epoch seconds of the last time that happened, 0.0 for never. Raises StoreUnavailable.
    """
    values = NamedValues(database)
    empty = database.prepare(sa.delete(transient))
    async with database.transaction():
        before = await values.get(_MACHINE_START)
        if before != start:
            await values.put(_MACHINE_START, start)
        if before not in (None, start):
            await database.run(empty, {})
            await values.put(FORGOTTEN_AT, repr(now))
        return float(await values.get(FORGOTTEN_AT) or 0.0)
