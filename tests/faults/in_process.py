"""A provider that answers on a socket in the test's own loop, so that a test can hold up what it waits for."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx
from argon2.profiles import CHEAPEST

from corpid import settings
from corpid.outbound.passwords import Argon2Passwords
from corpid.rules.directory.records import Change
from corpid.web.http import server
from corpid_dev.relying_party import people
from corpid_dev.relying_party.browser import Browser
from corpid_dev.relying_party.people import Person
from corpid_dev.relying_party.relying_party import RelyingParty
from tests.faults.serving import chosen
from tests.machine import free_port
from tests.protocol.deployment import fill, registered
from tests.protocol.directory import PASSWORD, TOTP_SECRET
from tests.world.clients import rp_keys
from tests.world.provider import EVENT, RunningProvider, served, started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from corpid.flows.request_context import Provider
    from corpid.web.http.connections import Limits

THREADS, WAITING = 1, 2
"""password checks at a time, and those that may wait"""


@dataclass
class Standing:
    """A provider that answers on a socket, in the test's own loop."""

    issuer: str
    provider: Provider
    passwords: Argon2Passwords
    http: httpx.AsyncClient
    browsing: httpx.AsyncClient
    """of the browser that `sign_in` signs in"""
    answering: Callable[[], int]
    """requests that are being answered now"""

    def party(self, client_id: str = "rp-1") -> RelyingParty:
        return RelyingParty(client_id=client_id, issuer=self.issuer, http=self.http, keys=rp_keys(client_id))

    async def registers(self, client_id: str, jwks_uri: str) -> None:
        """A client whose keys are fetched from an address."""
        client = registered(client_id, jwks=None, jwks_uri=jwks_uri)
        await self.provider.registry.directory.write([Change(None, client)], EVENT)

    async def sign_in(self) -> None:
        """Alice, in a browser that later flows may use."""
        alice = Person(user_name="alice", password=PASSWORD, totp_secret=TOTP_SECRET)
        await people.sign_in(Browser(self.browsing, frozenset({self.issuer})), await self.party().begin(), alice)

    async def arrived(self) -> Browser:
        """A browser that shows the first page of a sign-in."""
        browsing = httpx.AsyncClient(transport=self.http._transport)
        browser = Browser(browsing, frozenset({self.issuer}))
        await browser.open(await self.party().begin())
        return browser


@asynccontextmanager
async def standing(path: Path, limits: Limits | None = None) -> AsyncIterator[Standing]:
    port = free_port()
    issuer = f"http://127.0.0.1:{port}"
    await fill(path, time.time, base_url=issuer, developer_mode=True)
    passwords = Argon2Passwords(threads=THREADS, waiting=WAITING, profile=CHEAPEST)
    loaded = settings.load(**chosen(path, issuer))
    async with (
        started(RunningProvider, loaded, clock=time.time, passwords=passwords) as made,
        httpx.AsyncClient(limits=httpx.Limits(max_connections=None), timeout=30, trust_env=False) as http,
        httpx.AsyncClient(limits=httpx.Limits(max_connections=None), timeout=30, trust_env=False) as browsing,
        served(made.application.asgi, server.bind("127.0.0.1", port), limits=limits) as running,
    ):
        try:
            yield Standing(issuer, made.provider, passwords, http, browsing, lambda: running.in_progress)
        finally:
            running.force()
