"""Opening of a database, with both stores on it.

The embedded default: `await open_sqlite(path, SecretCipher(embedded_key(directory)), clock, migrate=True)`; for
several processes and hosts: `await open_postgresql(url, cipher, clock)`. `await stores.close()` at the end.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.rules.audit import AuditAction, AuditEvent
from corpid.stores import Clock, machine_start
from corpid.stores.data_loss import Takeovers, after_copy, after_machine_restart
from corpid.stores.encryption_at_rest import SecretCipher
from corpid.stores.sql import migration, schema
from corpid.stores.sql.keys import check_cipher
from corpid.stores.sql.migration import SchemaOlder
from corpid.stores.sql.registry import Registry
from corpid.stores.sql.sqlite import SqliteDatabase
from corpid.stores.sql.statements import Database
from corpid.stores.sql.transient import SqlTransientStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

POOL_SIZE: Final = 10
"""connections of one process to PostgreSQL"""
_COPY_FOUND: Final = AuditEvent(actor="system", action=AuditAction.DEPLOYMENT_RESTORE, object="copy of a backup")


class SqlStores(msgspec.Struct, frozen=True, kw_only=True):
    """Both stores on one database, and its end."""

    registry: Registry
    transient: SqlTransientStore
    database: Database
    cipher: SecretCipher

    async def close(self) -> None:
        """Write remaining changes and close the database.

        Nothing may be used afterwards.
        """
        await self.database.close()


async def open_sqlite(path: Path, cipher: SecretCipher, clock: Clock, *, migrate: bool = False) -> SqlStores:
    """Open a database file, in the event loop that will use it.

    Each process opens it for itself.

    `migrate` brings the schema up to date first, under a lock (the embedded default); without it the
    schema must be this version's. `clock` gives the time of audit events.
    Reads and short writes run in the loop; a thread keeps the write-ahead log short.

    Raises SchemaError (older, newer, unreachable), EncryptionError (the key-encryption key is
    not the one that sealed this database) and StoreUnavailable, each with a sentence for the operator.
    D43, docs/architecture.md, "One-time use".
    """
    (schema.migrate if migrate else schema.check)(path)
    database, lost = SqliteDatabase(path), 0.0
    stores = _stores(database, cipher, clock, reject_issued_before=lambda: lost)
    try:
        await check_cipher(database, cipher)
        await after_copy(database, stores.registry.audit, _COPY_FOUND, now=clock())
        lost = await after_machine_restart(database, start=machine_start(), now=clock())
    except BaseException:
        await database.close()
        raise
    return stores


async def open_postgresql(
    url: str,
    cipher: SecretCipher,
    clock: Clock,
    *,
    migrate: bool = False,
    pool_size: int = POOL_SIZE,
    accept_other: bool = False,
) -> SqlStores:
    """Open a PostgreSQL database (`postgresql://user:password@host:port/name`), in the event loop that will use
    it; each process opens it for itself and holds at most `pool_size` connections.

    `migrate` and `clock` are as for `open_sqlite`. What lives for minutes expires by the server's clock. What
    was written stays written when the server goes down; after a takeover, anything that may be missing is refused.
    A database that is not the one used last is refused, unless `accept_other` (docs/decisions/0028).

    Raises SchemaError (older, newer, unreachable, forgetful), EncryptionError and StoreUnavailable,
    each with a sentence for the operator. D43, D49, docs/reliability.md.
    """
    # The driver is loaded by those who use it.
    from corpid.stores.sql.postgresql import name_application, open_database  # noqa: PLC0415

    await asyncio.to_thread(_made_usable if migrate else schema.check, url)
    takeovers = Takeovers(url, clock, accept_other=accept_other)
    await takeovers.settle()
    database = await open_database(
        url, name=name_application(schema.find_head()), pool_size=pool_size, admit=takeovers.admit
    )
    try:
        await check_cipher(database, cipher)
    except BaseException:
        await database.close()
        raise
    return _stores(database, cipher, clock, reject_issued_before=lambda: takeovers.reject_issued_before)


def _made_usable(url: str) -> None:
    """Migrate at start.

    A node neither waits for a backfill nor begins one.
    """
    try:
        schema.check(url)
    except SchemaOlder:
        schema.migrate(url, through=migration.EXPAND)


def _stores(
    database: Database,
    cipher: SecretCipher,
    clock: Clock,
    *,
    reject_issued_before: Callable[[], float],
) -> SqlStores:
    return SqlStores(
        registry=Registry(database, cipher, clock, lost_at=reject_issued_before),
        transient=SqlTransientStore(database, reject_issued_before=reject_issued_before),
        database=database,
        cipher=cipher,
    )
