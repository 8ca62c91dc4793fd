"""Which engine holds what: settings → key-encryption key → the stores. Beside `app`, all that knows an adapter."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from corpid.adapters import sealing
from corpid.adapters.sql import retention, schema
from corpid.adapters.sql.backup import BackupRefused, in_use
from corpid.adapters.sql.schema import SchemaError
from corpid.adapters.sql.stores import open_postgresql, open_sqlite
from corpid.flows.key_rotation import ensure_first_keys
from corpid.ports import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from corpid.adapters.sql.stores import SqlStores
    from corpid.ports import AuditEvent, Clock, Registry, TransientStore
    from corpid.settings import Settings


class StartError(Exception):
    """The provider cannot start; the text says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """What lasts, and what lives for minutes; in one engine or in two."""

    registry: Registry
    transient: TransientStore
    connections_in_use: Callable[[], int]
    """connections to the database that are busy; 0 where it has none"""
    rewrap: Callable[[AuditEvent], Awaitable[int]]
    """seals every secret at rest with the current key-encryption key; how many that were (D43)"""
    prune: Callable[..., Awaitable[int]]
    """adapters.sql.retention.prune on this database"""


async def migrate(settings: Settings) -> str:
    """Bring the database's schema up to this version; returns its name, without secrets. Raises StartError."""
    try:
        if settings.is_embedded:
            settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        return await schema.migrate_url(settings.database_url)
    except SchemaError as error:
        raise StartError(str(error)) from error
    except OSError as error:
        raise StartError(f"{settings.data_dir} cannot be written: {error.strerror}") from error


@asynccontextmanager
async def opened(settings: Settings, clock: Clock) -> AsyncIterator[Engines]:
    """The stores of a deployment, with its first keys in them. Raises StartError."""
    async with AsyncExitStack() as stack:
        try:
            settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            if settings.sqlite_path is not None:
                stack.enter_context(in_use(settings.sqlite_path))
            stores = await _database(settings, clock)
            stack.push_async_callback(stores.close)
            await ensure_first_keys(stores.registry, now=clock())
            transient = await _transient(settings, stores, clock, stack)
        except (SchemaError, sealing.SealingError, StoreUnavailable, BackupRefused) as error:
            raise StartError(str(error)) from error
        except OSError as error:
            raise StartError(f"the data directory {settings.data_dir} cannot be used: {error.strerror}") from error
        yield Engines(
            registry=stores.registry,
            transient=transient,
            connections_in_use=lambda: stores.database.connections_in_use,
            rewrap=stores.rewrap,
            prune=partial(retention.prune, stores.database, stores.registry.audit),
        )


async def _database(settings: Settings, clock: Clock) -> SqlStores:
    sealing_with = sealer(settings)
    if settings.sqlite_path is not None:
        return await open_sqlite(settings.sqlite_path, sealing_with, clock, migrate=settings.is_embedded)
    return await open_postgresql(
        settings.database_url,
        sealing_with,
        clock,
        migrate=settings.migrate_on_start,
        pool_size=settings.database_connections,
    )


async def _transient(settings: Settings, stores: SqlStores, clock: Clock, stack: AsyncExitStack) -> TransientStore:
    if not settings.transient_url:
        return stores.transient
    # The driver is loaded by those who use it.
    from corpid.adapters.valkey import open_valkey  # noqa: PLC0415

    began = min((key.created_at for key in await stores.registry.keys.all()), default=0)
    valkey = await open_valkey(settings.transient_url, clock=clock, deployed_at=began)
    stack.push_async_callback(valkey.close)
    return valkey


def sealer(settings: Settings) -> sealing.Sealer:
    """What seals secrets at rest. Raises StartError, sealing.SealingError (D43)."""
    older = [sealing.key_from_file(path) for path in settings.old_key_encryption_key_files]
    return sealing.Sealer(_current_key(settings), older)


def _current_key(settings: Settings) -> bytes:
    if settings.key_encryption_key is not None:
        return sealing.key_from_text(settings.key_encryption_key.get_secret_value(), "CORPID_KEY_ENCRYPTION_KEY")
    if settings.key_encryption_key_file is not None:
        return sealing.key_from_file(settings.key_encryption_key_file)
    if not settings.is_embedded:
        raise StartError(
            "CORPID_KEY_ENCRYPTION_KEY_FILE is not set: with a database of your own, name a file (mode 0600) "
            "that holds the base64 of 32 random bytes"
        )
    return sealing.embedded_key(settings.data_dir)
