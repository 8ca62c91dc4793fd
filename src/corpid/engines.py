"""Opening of the stores, keys and mail that the settings name.

Only here and in `app` are stores and outbound chosen. A command for one engine (backup, doctor) knows that one.
Commands need no `app`, which takes as long to load as all the rest: it is for those who serve.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import secrets
import socket
import threading
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.operations.signing_keys import ensure_first_keys, ensure_standby_key
from corpid.jose.encoding import base64url
from corpid.outbound.mail import Mail, NoMail, mail_server
from corpid.rules import probes
from corpid.rules.audit import AuditEvent
from corpid.rules.directory.access import CommandLine
from corpid.rules.failures import StoreUnavailable
from corpid.rules.limits import CLOCKS_APART_SECONDS
from corpid.stores import Clock, data_loss, encryption_at_rest
from corpid.stores.data_loss import SinceRestore
from corpid.stores.sql import database_identity, migration, schema
from corpid.stores.sql.deployment import SqlOrderlyStops
from corpid.stores.sql.migration import SchemaError
from corpid.stores.sql.open import SqlStores, open_postgresql, open_sqlite
from corpid.stores.sql.registry import Registry
from corpid.stores.sql.sqlite import JoinedBatches, SqliteDatabase, hold_in_use
from corpid.stores.transient import OpenedStore, OrderlyStops, TransientEngine, TransientStore, transient_engine

if TYPE_CHECKING:
    from corpid.outbound.passwords import Passwords
    from corpid.settings import Settings
    from corpid.stores.sql.schema import MigrationPlan
    from corpid.web.pages.emails import EmailRenderer
    from corpid.web.pages.theme import Theme

_LAST_EMAILS_SECONDS: Final = 5.0
"""for e-mails that wait when a process stops"""
reason: Final[ContextVar[str]] = ContextVar("reason", default="")
"""why a command is run: `corpid --reason TEXT …`"""


class StartError(Exception):
    """The provider cannot start; the message says what to change."""


class Engines(msgspec.Struct, frozen=True, kw_only=True):
    """The registry and the transient store.

    In one engine or in two.
    """

    registry: Registry
    transient: TransientStore
    connections_in_use: Callable[[], int]
    """connections to the database that are busy; 0 if it has none"""
    after_restore: Callable[..., Awaitable[None]]
    """`stores.data_loss.after_restore` on this database"""
    key_encryption_key: str
    """the identifier of the key that encrypts, the start of its hash (D43)"""
    open_probe: Callable[[str], str]
    """opens a token of `corpid doctor`; raises SecretUnreadable (`rules.probes`)"""


@asynccontextmanager
async def open_stores(settings: Settings, clock: Clock, *, accept_other: bool = False) -> AsyncIterator[Engines]:
    """The stores of a deployment, with its first keys in them.

    A database that is not the one used last is refused, unless `accept_other`. Raises StartError. docs/decisions/0028
    """
    async with AsyncExitStack() as stack:
        with _start_errors(settings):
            stores = await _open_database(settings, clock, stack, accept_other=accept_other)
            if not await stores.registry.keys.list_all():
                await data_loss.no_store_yet(stores.database)
            await ensure_first_keys(stores.registry, now=clock())
            if not accept_other:  # numbers of the audit go on after a gap first
                await ensure_standby_key(stores.registry, now=clock())
            transient = await _transient(settings, stores, clock, stack)
        yield Engines(
            registry=stores.registry,
            transient=transient,
            connections_in_use=lambda: stores.database.connections_in_use,
            after_restore=partial(data_loss.after_restore, stores.database, stores.transient, stores.registry.audit),
            key_encryption_key=stores.cipher.current,
            open_probe=partial(stores.cipher.open, *probes.PLACE),
        )


class RestartingEngine(msgspec.Struct, frozen=True, kw_only=True):
    """The engine that `transient_url` names, and the database."""

    registry: Registry
    engine: TransientEngine
    stops: OrderlyStops
    note: Callable[[AuditEvent], Awaitable[None]]
    """writes an entry of the audit"""


@asynccontextmanager
async def open_for_restart(settings: Settings) -> AsyncIterator[RestartingEngine]:
    """The engine of `transient_url`, which need not be open.

    Raises StartError. Source: D67
    """
    async with AsyncExitStack() as stack:
        with _start_errors(settings):
            stores = await _open_database(settings, time.time, stack)

        async def note(event: AuditEvent) -> None:
            async with stores.database.transaction():
                await stores.registry.audit.write(event)

        yield RestartingEngine(
            registry=stores.registry,
            engine=transient_engine(settings.transient_url),
            stops=SqlOrderlyStops(stores.database),
            note=note,
        )


async def _open_database(
    settings: Settings, clock: Clock, stack: AsyncExitStack, *, accept_other: bool = False
) -> SqlStores:
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    if settings.sqlite_path is not None:
        stack.enter_context(hold_in_use(settings.sqlite_path))
    sealing_with = secret_cipher(settings)
    if settings.sqlite_path is not None:
        stores: SqlStores = await open_sqlite(settings.sqlite_path, sealing_with, clock, migrate=settings.is_embedded)
    else:
        stores = await open_postgresql(
            settings.database_url,
            sealing_with,
            clock,
            migrate=settings.migrate_on_start,
            pool_size=settings.database_connections,
            accept_other=accept_other,
        )
    stack.push_async_callback(stores.close)
    return stores


async def _transient(settings: Settings, stores: SqlStores, clock: Clock, stack: AsyncExitStack) -> TransientStore:
    store: OpenedStore = stores.transient
    if settings.transient_url:
        store = await transient_engine(settings.transient_url).open(clock=clock, stops=SqlOrderlyStops(stores.database))
    stack.push_async_callback(store.close)
    store_identity = store.store_identity
    # Nodes write their own time into what they issue, so the moment lies as far ahead as they may be.
    is_local = settings.transient_engine.is_local
    ahead = 0 if is_local else CLOCKS_APART_SECONDS
    moment = max(clock(), await store.engine_time() or 0.0) + ahead
    rejected_before = await data_loss.use_store(stores.database, store_identity, moment=moment)
    store.reject_before(rejected_before, store_identity=store_identity)
    if not settings.transient_url:
        return store
    found: TransientStore = store
    if is_local and isinstance(stores.database, SqliteDatabase):
        found = JoinedBatches(store, stores.database)
    restored = await data_loss.restored_at(stores.database)
    return SinceRestore(found, restored) if restored else found


@contextmanager
def _start_errors(settings: Settings) -> Iterator[None]:
    """Turn what keeps stores from opening into StartError."""
    try:
        yield
    except (SchemaError, encryption_at_rest.EncryptionError, StoreUnavailable) as error:
        raise StartError(str(error)) from error
    except OSError as error:
        raise StartError(f"the data directory {settings.data_dir} cannot be used: {error.strerror}") from error


class Stores:
    """Dependencies of a command: settings, actor, stores, password hashing, and the clock."""

    def __init__(self, opened: Engines, *, settings: Settings, clock: Callable[[], float]) -> None:
        self.settings: Final = settings
        self.actor: Final = at_command_line()
        self.registry: Final = opened.registry
        self.transient: Final = opened.transient
        self.clock: Final = clock
        self._closing: Final = ExitStack()

    @cached_property
    def passwords(self) -> Passwords:
        """Password hashing in one thread."""
        # Most commands hash none, and start sooner without this.
        from corpid.outbound.passwords import Argon2Passwords, parameters  # noqa: PLC0415

        passwords = Argon2Passwords(threads=1, profile=parameters(self.settings.hash_cost))
        self._closing.callback(passwords.close)
        return passwords

    def close(self) -> None:
        """Refuse passwords that wait to be hashed."""
        self._closing.close()


@asynccontextmanager
async def open_registry(settings: Settings) -> AsyncIterator[Stores]:
    """The stores for a command.

    Its changes have the user of the process as their actor. Raises StartError. Source: D54
    """
    async with open_stores(settings, time.time) as engines:
        stores = Stores(engines, settings=settings, clock=time.time)
        try:
            yield stores
        finally:
            stores.close()


def at_command_line() -> CommandLine:
    """The system's user who runs this process, and the host.

    Source: D54
    """
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # an identifier without a name
        user = str(os.getuid())
    return CommandLine(by=f"{user}@{socket.gethostname()}", reason=reason.get())


async def require_kind(settings: Settings, registry: Registry, *, demo: bool) -> None:
    """Mark a demo's store, and refuse it anywhere else.

    Raises StartError. Source: D66
    """
    if not demo and await registry.deployment.is_for_developers():
        raise StartError(
            "this database is a demo's, where people sign in without their factors: use another data_dir or database_url"
        )
    if demo and not settings.developer_mode:
        raise StartError("people sign in without their factors in developer mode only, and developer_mode is off")
    if demo:
        await registry.deployment.keep_for_developers()


async def migrate(settings: Settings, *, contract: bool, report: Callable[[str], None]) -> str:
    """Bring the database's schema up to this version.

    Returns its name, without secrets.

    `contract` also takes away what no version that still runs needs. `report` gets sentences about progress. Who
    is cancelled ends after what is being done, which stays done. Raises StartError. docs/decisions/0009
    """
    stop = threading.Event()
    database = schema.find_target(settings.database_url)
    through = migration.CONTRACT if contract else migration.FILL
    try:
        if settings.is_embedded:
            settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        work = asyncio.ensure_future(
            asyncio.to_thread(schema.migrate, database, through=through, report=report, stop=stop)
        )
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            stop.set()
            return await work
    except SchemaError as error:
        raise StartError(str(error)) from error
    except OSError as error:
        raise StartError(f"{settings.data_dir} cannot be written: {error.strerror}") from error


async def plan_migration(settings: Settings) -> MigrationPlan:
    """The steps that `migrate` would take; changes nothing.

    Raises StartError. docs/decisions/0009
    """
    try:
        return await asyncio.to_thread(schema.plan, schema.find_target(settings.database_url))
    except SchemaError as error:
        raise StartError(str(error)) from error


async def unconfirmed_restore(settings: Settings) -> str:
    """The reason why no server starts on a restored database.

    Empty if they do. Raises StartError. docs/decisions/0028
    """
    try:
        return await asyncio.to_thread(database_identity.explain_unconfirmed, schema.find_target(settings.database_url))
    except SchemaError as error:
        raise StartError(str(error)) from error


def secret_cipher(settings: Settings) -> encryption_at_rest.SecretCipher:
    """The cipher of secrets at rest. Raises StartError, EncryptionError (D43)."""
    older = [encryption_at_rest.key_from_file(path) for path in settings.old_key_encryption_key_files]
    return encryption_at_rest.SecretCipher(_current_key(settings), older)


def _current_key(settings: Settings) -> bytes:
    if settings.key_encryption_key is not None:
        return encryption_at_rest.key_from_text(
            settings.key_encryption_key.get_secret_value(), "CORPID_KEY_ENCRYPTION_KEY"
        )
    if settings.key_encryption_key_file is not None:
        return encryption_at_rest.key_from_file(settings.key_encryption_key_file)
    if not settings.is_embedded:
        raise StartError(
            "CORPID_KEY_ENCRYPTION_KEY_FILE is not set: with a database of your own, name a file (mode 0600) "
            "that holds the base64 of 32 random bytes"
        )
    return encryption_at_rest.embedded_key(settings.data_dir)


@asynccontextmanager
async def open_mail(settings: Settings, *, clock: Clock) -> AsyncIterator[Mail]:
    """The mail of a deployment.

    What was posted is sent before the context ends, if it can be in a few seconds.
    """
    if not settings.mail_url:
        yield NoMail()
        return
    # Most commands send no e-mails, and start sooner without this.
    from corpid.outbound.smtp import SmtpMail  # noqa: PLC0415

    mail = SmtpMail(
        mail_server(settings.mail_url),
        sender=settings.mail_from,
        name=settings.name,
        reply_to=settings.mail_reply_to,
        render=email_renderer(settings).render,
        clock=clock,
    )
    try:
        yield mail
    finally:
        await mail.close(_LAST_EMAILS_SECONDS)


def email_renderer(settings: Settings) -> EmailRenderer:
    """The renderer of a deployment's e-mails. Raises StartError."""
    # It takes long to load, and most commands do without.
    from corpid.web.pages.emails import EmailRenderer  # noqa: PLC0415

    return EmailRenderer(name=settings.name, timezone=settings.timezone, theme=read_theme(settings))


def read_theme(settings: Settings) -> Theme:
    """The theme of a deployment. Raises StartError."""
    from corpid.web.pages import theme  # noqa: PLC0415 - most commands write no page

    try:
        return theme.read(settings.theme) if settings.theme is not None else theme.NO_THEME
    except theme.ThemeError as error:
        raise StartError(str(error)) from error


def new_id() -> str:
    """32 random bytes, base64url."""
    return base64url(secrets.token_bytes(32))


def new_user_id() -> str:
    """A random UUID (RFC 9562 §5.4)."""
    return str(uuid.uuid4())
