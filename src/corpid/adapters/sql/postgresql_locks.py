"""Waiting for transactions that others have open, without keeping anybody waiting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.ports import StoreUnavailable

if TYPE_CHECKING:
    from corpid.adapters.sql.statements import Database, Prepared

_LOW_BITS: Final = 32
_ATTEMPTS: Final = 500
_PAUSE_SECONDS: Final = 0.01


def holders(lock: int) -> sa.Select[tuple[str]]:
    """The transactions of others that have an advisory lock; PostgreSQL shows its number in two halves."""
    names = ("virtualtransaction", "locktype", "granted", "pid", "database", "classid", "objid", "objsubid")
    locks = sa.table("pg_locks", *map(sa.column, names))
    here = sa.text("(SELECT oid FROM pg_database WHERE datname = current_database())")
    low = (1 << _LOW_BITS) - 1
    halves = {locks.c.classid: lock >> _LOW_BITS, locks.c.objid: lock & low, locks.c.objsubid: 1}
    return (
        sa.select(locks.c.virtualtransaction)
        .where(locks.c.locktype == sa.literal_column("'advisory'"), locks.c.granted, locks.c.database == here)
        .where(*(half == sa.literal_column(str(value)) for half, value in halves.items()))
        .where(locks.c.pid != sa.func.pg_backend_pid())
    )


async def outlive(database: Database, found: Prepared) -> None:
    """Return when every transaction that is among the `holders` now has ended; later ones do not count.

    Raises StoreUnavailable after five seconds.
    """
    waited_for = {name for (name,) in await database.rows(found, {})}
    for _ in range(_ATTEMPTS):
        if not waited_for:
            return
        await asyncio.sleep(_PAUSE_SECONDS)
        waited_for &= {name for (name,) in await database.rows(found, {})}
    raise StoreUnavailable(
        "a transaction has been writing to the audit table for more than five seconds: look for it in pg_stat_activity, "
        "or try again"
    )
