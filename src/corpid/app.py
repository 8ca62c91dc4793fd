"""The composition root: settings → adapters → Provider → ASGI application.

The only place that knows which adapter is used.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from corpid.adapters import sealing
from corpid.adapters.client_keys import FetchedClientKeys
from corpid.adapters.egress import DEVELOPER, INTERNET, Egress
from corpid.adapters.passwords import Argon2Passwords
from corpid.adapters.sql import schema
from corpid.adapters.sql.schema import SchemaError
from corpid.adapters.sql.stores import open_sqlite
from corpid.flows.key_rotation import ensure_first_keys
from corpid.flows.live import LiveState
from corpid.flows.own_keys import OwnKeys
from corpid.flows.provider import Policy, Provider
from corpid.flows.usage import UsageLog
from corpid.jose import algorithms
from corpid.jose.encoding import base64url
from corpid.ports import StoreUnavailable
from corpid.protocol.generations import GENERATIONS
from corpid.web import access_log
from corpid.web.endpoints import Desk
from corpid.web.middleware import Shell
from corpid.web.rendering import Renderer
from corpid.web.routes import Router

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from corpid.adapters.sql.stores import SqlStores
    from corpid.ports import AuditEvent, Passwords, Registry, TransientStore
    from corpid.protocol.generations import Generation
    from corpid.settings import Settings

OWN_ALGORITHM: Final = "ES256"
"""what the provider itself signs with (D20, D21)"""
_SWEEP_SECONDS: Final = 1.0


class StartError(Exception):
    """The provider cannot start; the text says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """What a command needs: stores, password hashing, and the clock."""

    registry: Registry
    transient: TransientStore
    passwords: Passwords
    clock: Callable[[], float]
    rewrap: Callable[[AuditEvent], Awaitable[int]]
    """seals every secret at rest with the current key-encryption key; how many that were (D43)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A provider, ready to be served."""

    asgi: Shell
    provider: Provider


def new_id() -> str:
    """32 random bytes, base64url."""
    return base64url(secrets.token_bytes(32))


def database_path(settings: Settings) -> Path:
    """The SQLite file that database_url names."""
    return Path(settings.database_url.removeprefix("sqlite:///"))


def migrate_database(settings: Settings) -> Path:
    """Bring the schema up to this version; returns the database's path. Raises StartError."""
    path = database_path(settings)
    try:
        if settings.is_embedded:
            settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        schema.migrate(path)
    except SchemaError as error:
        raise StartError(str(error)) from error
    except OSError as error:
        raise StartError(f"{path} cannot be written: {error.strerror}") from error
    return path


def _sealer(settings: Settings) -> sealing.Sealer:
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


@asynccontextmanager
async def _opened(settings: Settings, clock: Callable[[], float]) -> AsyncIterator[SqlStores]:
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        stores = await open_sqlite(database_path(settings), _sealer(settings), clock, migrate=settings.is_embedded)
        await ensure_first_keys(stores.registry, now=clock())
    except (SchemaError, sealing.SealingError, StoreUnavailable) as error:
        raise StartError(str(error)) from error
    except OSError as error:
        raise StartError(f"the data directory {settings.data_dir} cannot be used: {error.strerror}") from error
    try:
        yield stores
    finally:
        await stores.close()


@asynccontextmanager
async def open_registry(settings: Settings, *, clock: Callable[[], float] = time.time) -> AsyncIterator[Stores]:
    """The stores for a command. Raises StartError."""
    passwords = Argon2Passwords(threads=1)
    try:
        async with _opened(settings, clock) as stores:
            yield Stores(
                registry=stores.registry,
                transient=stores.transient,
                passwords=passwords,
                clock=clock,
                rewrap=stores.rewrap,
            )
    finally:
        passwords.close()


def tested(generation: Generation) -> Generation:
    """A generation with the algorithms that pass their self-test. Raises StartError where ours does not. D42"""
    working = algorithms.working(tuple(algorithms.ALGORITHMS))
    lacking = sorted(set(algorithms.ALGORITHMS).difference(working))
    if OWN_ALGORITHM in lacking:
        raise StartError(
            f"{OWN_ALGORITHM} does not work with the installed cryptography library: install another build"
        )
    if lacking:
        access_log.log().warning("algorithm_not_working", detail=", ".join(lacking))
    return replace(
        generation,
        assertion_algorithms=tuple(name for name in generation.assertion_algorithms if name in working),
        proof_algorithms=tuple(name for name in generation.proof_algorithms if name in working),
    )


def _policy(settings: Settings) -> Policy:
    served = sorted((tested(GENERATIONS[name]) for name in settings.generations), key=lambda each: not each.pushed)
    pushed = next((generation for generation in served if generation.pushed), None)
    query = next((generation for generation in served if not generation.pushed), None)
    return Policy(
        base_url=settings.base_url,
        name=settings.name,
        pushed=pushed,
        query=query,
        returns_iss=served[0].returns_iss if settings.return_iss is None else settings.return_iss,
        session_seconds=settings.session_seconds,
        timezone=settings.timezone,
        acr_prefix=settings.acr_prefix,
        dpop_nonces=settings.dpop_nonces,
        dpop_mismatch_code=settings.dpop_mismatch_error,
        developer_mode=settings.developer_mode,
    )


async def _sweep(provider: Provider) -> None:
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        with suppress(StoreUnavailable):
            await provider.transient.sweep(now=provider.clock())
            await provider.usage.flush(provider.registry)


@asynccontextmanager
async def create(
    settings: Settings, *, clock: Callable[[], float] = time.time, passwords: Argon2Passwords | None = None
) -> AsyncIterator[Application]:
    """A provider on its stores, until the context ends. Raises StartError.

    `passwords` replaces the hashing of the settings, for tests that must not be slow.
    """
    hashing = passwords or Argon2Passwords(threads=settings.hashing_threads, waiting=settings.hashing_queue)
    egress = Egress(own_url=settings.base_url, rules=DEVELOPER if settings.developer_mode else INTERNET)
    async with _opened(settings, clock) as stores:
        client_keys = FetchedClientKeys(stores.registry.clients, egress.fetch)
        policy = _policy(settings)
        provider = Provider(
            policy=policy,
            registry=stores.registry,
            transient=stores.transient,
            client_keys=client_keys,
            passwords=hashing,
            own_keys=OwnKeys(stores.registry, certificates=any(each.certificates for each in policy.served)),
            live=LiveState(stores.registry),
            usage=UsageLog(),
            clock=clock,
            new_id=new_id,
        )
        sweeper = asyncio.create_task(_sweep(provider))
        try:
            yield Application(asgi=_asgi(settings, provider), provider=provider)
        finally:
            sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await sweeper
            with suppress(StoreUnavailable):
                await provider.usage.flush(provider.registry)
            await client_keys.close()
            hashing.close()


def _asgi(settings: Settings, provider: Provider) -> Shell:
    base_path = urlsplit(settings.base_url).path
    renderer = Renderer(name=settings.name, base_path=base_path, developer_mode=settings.developer_mode)
    desk = Desk(provider=provider, renderer=renderer, base_path=base_path)

    async def ready() -> None:
        await provider.registry.deployment.ready()
        await provider.own_keys.ring(provider.clock())

    return Shell(
        Router(desk),
        base_url=settings.base_url,
        ready=ready,
        allowed_hosts=settings.allowed_hosts,
        trusted_proxies=settings.trusted_proxies,
    )
