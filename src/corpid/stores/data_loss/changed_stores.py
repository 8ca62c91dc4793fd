"""A transient store that was replaced, or emptied while no process watched.

The deployment table notes the lineage that was used last (ports.TransientEngine.lineage), and since when.
docs/decisions/0011
Source: D67
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.stores.sql.deployment import NamedValues

if TYPE_CHECKING:
    from corpid.stores.sql.statements import Database

_IN_USE: Final = "store_in_use"
_NONE: Final = "none"
_UNKNOWN: Final = "unknown"


async def none_yet(database: Database) -> None:
    """Note that a new deployment has not used any store.

    Written before its first keys, so of many processes that start at once none finds keys without a note. Raises
    StoreUnavailable.
    """
    async with database.transaction():
        await NamedValues(database).put_first(_IN_USE, _encoded(_NONE, 0.0))


async def use(database: Database, lineage: str, *, moment: float) -> float:
    """Note that the store of this lineage is used from now on.

    Raises StoreUnavailable.

    Returns before when everything is to be refused, epoch seconds: 0.0 if no other store was ever used, what was
    noted if it is this one already, else `moment`.
    """
    values = NamedValues(database)
    while True:
        before = await values.get(_IN_USE) or await _unknown(database)
        used, _, since = before.partition(" ")
        if used == lineage:
            return float(since)
        refused_before = 0.0 if used == _NONE else moment
        async with database.transaction():
            if await values.change(_IN_USE, before, _encoded(lineage, refused_before)):
                return refused_before


async def _unknown(database: Database) -> str:
    """For a deployment that is older than this note."""
    values = NamedValues(database)
    async with database.transaction():
        await values.put_first(_IN_USE, _encoded(_UNKNOWN, 0.0))
    return str(await values.get(_IN_USE))


def _encoded(lineage: str, since: float) -> str:
    return f"{lineage} {since!r}"
