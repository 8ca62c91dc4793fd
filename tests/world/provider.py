"""The provider in the test's own process: the real application; its clock is the test's, and its hashing is cheap.

`started` gives one for as long as a context lasts, `SharedStores` a database that many tests use one after the other.
Browsers, relying parties and persons reach it without sockets, or through `served` over one.
"""

from __future__ import annotations

import asyncio
import atexit
import shutil
import sqlite3
import tempfile
import threading
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from urllib.parse import urlsplit

from argon2.profiles import CHEAPEST

from corpid import app, engines, settings
from corpid.flows.operations.signing_keys import ensure_first_keys
from corpid.outbound.passwords import Argon2Passwords
from corpid.rules.audit import AuditEvent
from corpid.rules.directory.records import Change
from corpid.stores.data_loss import no_store_yet
from corpid.stores.sql.open import open_sqlite
from corpid.web.context import SIGN_IN_PATH
from corpid.web.http.server import Server
from corpid.web.routes import PAGES_WITH_FORMS
from corpid_dev.relying_party.browser import Browser
from corpid_dev.relying_party.interfaces import INTERFACES, Interface
from corpid_dev.relying_party.relying_party import RelyingParty
from corpid_dev.web.demo_extension import DemoExtension
from tests.engines import sqlite
from tests.machine import memory
from tests.world import clients, short_lived
from tests.world.client import InProcessClient
from tests.world.clock import Clock
from tests.world.short_lived import ShortLived

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable, Sequence

    import httpx
    from starlette.types import ASGIApp

    from corpid.flows.request_context import Provider
    from corpid.outbound.mail import Mail
    from corpid.rules.fields import KeyedRecord
    from corpid.rules.oauth.records import Client
    from corpid_dev.flows.people import Developer

R = TypeVar("R", bound="RunningProvider")
EVENT: Final = AuditEvent(actor="operator", action="test.change")


CheapPasswords: Final = partial(Argon2Passwords, profile=CHEAPEST)
"""passwords whose hash costs little: what a password check costs is tested elsewhere"""


def hashing() -> Argon2Passwords:
    return CheapPasswords(threads=1)


@dataclass(kw_only=True)
class RunningProvider:
    """`provider` is what a test may look into; it acts from outside, through browsers and relying parties."""

    application: app.Application
    chosen: settings.Settings
    clock: Callable[[], float]
    passwords: Argon2Passwords
    stack: AsyncExitStack
    """closes what was opened for this provider, before it is closed itself"""

    @property
    def provider(self) -> Provider:
        return self.application.provider

    @property
    def base(self) -> str:
        return self.chosen.base_url

    @property
    def directory(self) -> Path:
        """Where its data lies."""
        return self.chosen.data_dir

    @property
    def interface(self) -> Interface:
        """What its relying parties speak."""
        return INTERFACES[self.chosen.generations[0]]

    def connect(self, address: str = "127.0.0.1") -> httpx.AsyncClient:
        """Somebody who reaches the provider from an address, and keeps cookies."""
        hooks = {"response": [answered_by_a_redirect]}
        http = InProcessClient(self.application.asgi, address, base_url=self.base, event_hooks=hooks)
        self.stack.push_async_callback(http.aclose)
        return http

    def new_browser(self, address: str = "127.0.0.1") -> Browser:
        """A new browser without cookies."""
        return Browser(self.connect(address), frozenset({origin(self.base)}))

    def party(self, client_id: str, http: httpx.AsyncClient, **options: Any) -> RelyingParty:
        """A relying party with nothing pushed yet; `options` are members of RelyingParty."""
        known = {"interface": self.interface, "clock": self.clock}
        keys = {} if "keys" in options else {"keys": clients.rp_keys(client_id)}
        return RelyingParty(client_id=client_id, issuer=self.base, http=http, **{**known, **keys, **options})

    def client_record(self, client_id: str, **members: Any) -> Client:
        """A client as it is registered here, in the generation that is spoken."""
        return clients.record(client_id, **{"interface": self.interface, **members})

    async def write(self, *records: KeyedRecord) -> None:
        """Another process writes these records."""
        await self.provider.registry.directory.write([Change(None, each) for each in records], EVENT)

    async def delete(self, *records: KeyedRecord) -> None:
        await self.provider.registry.directory.write([Change(each, None) for each in records], EVENT)


DIRECT: Final = frozenset({400, 403, 404, 408, 409, 410, 413, 421, 429, 500, 503})
"""statuses of a page that may answer a form itself: limits, forged, forbidden, gone, too large, misdirected, maintenance"""
_PAGES: Final = (*(path.removesuffix("{rest}") for path in PAGES_WITH_FORMS), "/developer")


async def answered_by_a_redirect(answer: httpx.Response) -> None:
    """No form of ours is answered with a page, whatever test sends it: Reload and Back send nothing again (D73)."""
    request, status = answer.request, answer.status_code
    if request.method != "POST" or not answer.headers.get("content-type", "").startswith("text/html"):
        return
    path = request.url.path
    if status in DIRECT or not path.startswith(_PAGES):
        return
    if status == 200 and path.startswith(SIGN_IN_PATH):
        await answer.aread()
        if 'name="form_token"' not in answer.text:
            return  # a sign-in that is over says so at once (D37)
    raise AssertionError(f"{path} answers a form with a page ({status})")


def origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


@asynccontextmanager
async def started(
    kind: type[R],
    chosen: settings.Settings,
    *,
    clock: Callable[[], float],
    passwords: Argon2Passwords | None = None,
    mail: Mail | None = None,
    stores: engines.Engines | None = None,
    developer: Developer | None = None,
) -> AsyncIterator[R]:
    """A provider with these settings, on its own stores or on some that are open already."""
    passwords = passwords or hashing()
    extended = None if developer is None else DemoExtension(developer)
    async with (
        app.create(
            chosen, clock=clock, passwords=passwords, mail=mail, opened=stores, extension=extended
        ) as application,
        AsyncExitStack() as stack,
    ):
        yield kind(application=application, chosen=chosen, clock=clock, passwords=passwords, stack=stack)


@asynccontextmanager
async def served(application: ASGIApp, sockets: Sequence[socket.socket], **options: Any) -> AsyncIterator[Server]:
    """An application behind these sockets, until the context ends; `options` are those of the server."""
    server = Server(application, **options)
    await server.start(list(sockets))
    try:
        yield server
    finally:
        await server.stop()


@cache
def template() -> Path:
    """A data directory as the first start makes it: with schema and keys, and nobody in it. To be copied.

    No store has been used with it yet. After another one, a Redis would refuse what was issued before it by its own
    clock, which goes on while that of a test stands still.
    """
    path = temporary_directory()
    chosen = settings.load(data_dir=path)
    file = sqlite(path / "corpid.sqlite")

    async def start() -> None:
        stores = await open_sqlite(file, engines.secret_cipher(chosen), Clock())
        try:
            await no_store_yet(stores.database)
            await ensure_first_keys(stores.registry, now=Clock()())
        finally:
            await stores.close()

    # in a thread, since whoever asks may be in a loop
    thread = threading.Thread(target=lambda: asyncio.run(start()))
    thread.start()
    thread.join()
    return path


def temporary_directory() -> Path:
    """A directory that is there until the tests end."""
    path = Path(tempfile.mkdtemp(prefix="corpid-world-", dir=memory()))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def copied(source: Path, target: Path) -> Path:
    """Fill a data directory as another one is, but as if no store had been used with it.

    A copy of short-lived data is never used, and counts as lost.
    """
    shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns(short_lived.DIRECTORY))
    with closing(sqlite3.connect(target / "corpid.sqlite")) as database, database:
        database.execute("UPDATE deployment SET value = 'none 0.0' WHERE name = 'store_in_use'")
    return target


class Snapshot:
    """A SQLite database as it was, put back while others have it open. Close it at the end."""

    def __init__(self, directory: Path) -> None:
        self._file: Final = sqlite3.connect(directory / "corpid.sqlite", isolation_level=None)
        self._file.execute("PRAGMA synchronous = OFF")
        self._copy: Final = sqlite3.connect(":memory:")
        self._file.backup(self._copy)
        (self._schema_version,) = self._file.execute("PRAGMA schema_version").fetchone()

    def restore(self) -> None:
        """Every table as it was.

        SQLite numbers the schema anew; with its number as it was, who has the file open reads it and prepares statements
        again only where a test has changed it.
        """
        self._copy.backup(self._file)
        self._file.execute(f"PRAGMA schema_version = {self._schema_version}")

    def close(self) -> None:
        self._copy.close()
        self._file.close()


class SharedStores:
    """A SQLite database that stays open, for providers that need it one after the other: opening costs more than most tests.

    What a provider keeps in memory is new with each of them; `reset` makes the database what it was when it was opened.
    """

    def __init__(self, stores: engines.Engines, directory: Path, clock: Clock) -> None:
        self.stores: Final = stores
        self.directory: Final = directory
        self.clock: Final = clock
        self._began: Final = clock.now
        self._snapshot: Final = Snapshot(directory)
        self._short_lived: Final = ShortLived(directory)

    @classmethod
    @asynccontextmanager
    async def opened(cls) -> AsyncIterator[Self]:
        """In the loop in which its providers will run."""
        with tempfile.TemporaryDirectory(prefix="corpid-world-", dir=memory()) as name:
            clock, directory = Clock(), copied(template(), Path(name))
            async with engines.open_stores(settings.load(data_dir=directory), clock) as stores:
                shared = cls(stores, directory, clock)
                try:
                    yield shared
                finally:
                    shared._snapshot.close()
                    shared._short_lived.close()

    def reset(self) -> None:
        """As it was when it was opened: every table, nothing short-lived, and the clock."""
        self._snapshot.restore()
        self._short_lived.remove_all()
        self.clock.now = self._began
