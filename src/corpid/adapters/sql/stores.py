"""The way into this package: one SQLite file that holds both ports.

The embedded default: `await open_sqlite(path, Sealer(embedded_key(directory)), clock, migrate=True)`, and
`await stores.close()` at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from corpid.adapters.sql import schema
from corpid.adapters.sql.engine import SqliteDatabase
from corpid.adapters.sql.registry import SqlRegistry, sql_registry
from corpid.adapters.sql.restarts import forgotten_at, machine_start
from corpid.adapters.sql.rewrap import check_sealer, rewrap
from corpid.adapters.sql.transient import SqlTransientStore

if TYPE_CHECKING:
    from pathlib import Path

    from corpid.adapters.sealing import Sealer
    from corpid.ports import AuditEvent, Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlStores:
    """Both ports on one database, and its end."""

    registry: SqlRegistry
    transient: SqlTransientStore
    database: SqliteDatabase
    sealer: Sealer

    async def rewrap(self, event: AuditEvent) -> int:
        """Seal every secret anew that an older key sealed; how many. Raises SealingError, then nothing changed. D43."""
        return await rewrap(self.database, self.sealer, self.registry.audit, event)

    async def close(self) -> None:
        """Write everything to the main file and let go of it. Nothing may be used afterwards."""
        await self.database.close()


async def open_sqlite(path: Path, sealer: Sealer, clock: Clock, *, migrate: bool = False) -> SqlStores:
    """Open a database file, in the event loop that will use it; each process opens it for itself.

    `migrate` brings the schema up to date first, under a lock (the embedded default); without it the
    schema must be this version's. `clock` gives the time of audit events. Reads and short writes run in
    the loop; a thread keeps the write-ahead log short.

    Raises schema.SchemaError (older, newer, unreachable), sealing.SealingError (the key-encryption key is
    not the one that sealed this database) and StoreUnavailable, each with a sentence for the operator.
    D43, DESIGN "One-time means one statement".
    """
    if migrate:
        schema.migrate(path)
    schema.check(path)
    database = SqliteDatabase(path)
    try:
        await check_sealer(database, sealer)
        lost = await forgotten_at(database, start=machine_start(), now=clock())
    except BaseException:
        await database.close()
        raise
    return SqlStores(
        registry=sql_registry(database, sealer, clock, database.check),
        transient=SqlTransientStore(database, forgotten_at=lost),
        database=database,
        sealer=sealer,
    )
