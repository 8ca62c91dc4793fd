"""A provider inside the test, with relying parties and browsers that reach it without sockets.

    with_provider(tmp_path, story), where `async def story(op): ...` does for instance

        rp = await op.register("rp-1", subject="entity")
        callback = await op.sign_in(rp, "rina")
        tokens = await rp.redeem(callback)

The provider is the real one on SQLite; only its clock is the test's, and its password hashing is cheap.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
from argon2.profiles import CHEAPEST

from corpid import app, settings
from corpid.flows.directory.apply import apply
from corpid.outbound.passwords import Argon2Passwords
from corpid.rules.directory.access import Operator
from corpid.rules.oauth.scopes import SCOPES
from corpid.sandbox import example_directory, people
from corpid.sandbox.browser import Browser
from corpid.sandbox.example_directory import ExampleDirectory
from corpid.sandbox.interfaces import CURRENT, Interface
from corpid.sandbox.relying_party import RelyingParty

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from corpid.app import Application
    from corpid.sandbox.people import Person
    from corpid.sandbox.verification import Callback

ISSUER = "https://op.example"
PROXY = "192.0.2.250"
"""who speaks TLS for the provider; these tests stand behind it"""
PERSON_ADDRESS = "192.0.2.7"
LAST_DAY = "2999-12-31"
"""until which clients are registered with a generation that ends"""
T = TypeVar("T")


@dataclass(slots=True)
class Clock:
    """Time that moves when the test says so; it starts at the machine's."""

    now: float = field(default_factory=lambda: float(int(time.time())))

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@dataclass(slots=True, kw_only=True)
class OpenedProvider:
    """A running provider with the example directory in it."""

    application: Application
    issuer: str
    clock: Clock
    directory: ExampleDirectory
    persons: dict[str, Person]
    http: httpx.AsyncClient
    """reaches the provider; no cookies are to be kept in it"""

    async def register(self, client_id: str = "rp-1", interface: Interface = CURRENT, **members: Any) -> RelyingParty:
        """A relying party with new keys, registered with every scope and service; members as in a directory file."""
        rp = RelyingParty(
            client_id=client_id, issuer=self.issuer, http=self.http, clock=self.clock, interface=interface
        )
        rp.redirect_uri = f"https://{client_id}.example/callback"
        client = {
            "name": f"Relying party {client_id}",
            "redirect_uris": [rp.redirect_uri],
            "jwks": rp.jwks(),
            "scopes": list(SCOPES),
            "services": self.directory.services(),
            **({"generations": [interface.name], "legacy_until": LAST_DAY} if interface.ends else {}),
            **members,
        }
        if interface.id_token_enc or "id_token_encryption_alg" in client:
            rp.id_token_enc = client.get("id_token_encryption_enc", CURRENT.id_token_enc)
        rp.userinfo_enc = client.get("userinfo_encryption_enc")
        rp.userinfo_signed = "userinfo_signing_alg" in client
        rp.stringified_blocks = client.get("stringified_blocks", False)
        await self.apply(json.dumps({"clients": {client_id: client}}).encode())
        return rp

    async def apply(self, content: bytes) -> None:
        """Apply a directory file, here and in what the provider remembers."""
        provider = self.application.provider
        await apply(
            provider.registry,
            provider.passwords,
            content,
            file="test.yaml",
            actor=Operator(),
            new_user_id=lambda: str(uuid.uuid4()),
            plain_passwords=True,
        )

    @asynccontextmanager
    async def browser(self) -> AsyncIterator[Browser]:
        """A browser of its own, with its own cookies."""
        async with _connected(self.application, self.issuer) as http:
            yield Browser(http, frozenset({self.issuer}))

    async def sign_in(self, rp: RelyingParty, person: str, entity: str | None = None) -> Callback:
        """Begin, and sign a person of the example directory in with a new browser; the callback."""
        url = await rp.begin()
        async with self.browser() as browser:
            return await people.sign_in(browser, url, self.persons[person], entity, now=self.clock)


@asynccontextmanager
async def opened_provider(path: Path, **overrides: Any) -> AsyncIterator[OpenedProvider]:
    """A provider whose data lies in `path`; overrides are settings."""
    clock = Clock()
    passwords = Argon2Passwords(threads=1, profile=CHEAPEST)
    issuer = overrides.setdefault("base_url", ISSUER)
    overrides.setdefault("trusted_proxies", (PROXY,))
    chosen = settings.load(data_dir=path, **overrides)
    async with (
        app.create(chosen, clock=clock, passwords=passwords) as application,
        _connected(application, issuer) as http,
    ):
        content = example_directory.content()
        directory = ExampleDirectory.read(content)
        provider = OpenedProvider(
            application=application,
            issuer=issuer,
            clock=clock,
            directory=directory,
            persons={person.user_name: person for person in directory.persons()},
            http=http,
        )
        await provider.apply(content)
        yield provider


def with_provider(path: Path, story: Callable[[OpenedProvider], Awaitable[T]], **overrides: Any) -> T:
    """Run a story against a fresh provider and give back what it returns."""

    async def run() -> T:
        async with opened_provider(path, **overrides) as provider:
            return await story(provider)

    return asyncio.run(run())


def _connected(application: Application, issuer: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=application.asgi, client=(PERSON_ADDRESS, 40000))
    return httpx.AsyncClient(transport=transport, base_url=issuer)
