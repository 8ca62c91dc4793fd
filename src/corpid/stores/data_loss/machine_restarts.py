"""SQLite on a machine that lost power, and with it transactions.

Only what lives for minutes is affected by so little; the table of it is emptied.
Source: DESIGN "What each engine promises"
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.stores.data_loss.restores import FORGOTTEN_AT
from corpid.stores.sql.deployment import NamedValues
from corpid.stores.sql.tables import transient

if TYPE_CHECKING:
    from corpid.stores.sql.statements import Database

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_START: Final = "machine_start"


def machine_start() -> str:
    """An identifier of this start of the machine.

    A system without one is taken never to lose power.
    """
    return _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else "not told"


async def reject_issued_before(database: Database, *, start: str, now: float) -> float:
    """Empty the short-lived table after a restart of the machine.

    Since the database was last opened, that is. Returns the epoch seconds of the last time that happened, 0.0 for
    never. Raises StoreUnavailable.
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
