"""A provider inside the test, with relying parties and browsers that reach it without sockets.

    with_provider(tmp_path, story), where `async def story(op): ...` does for instance

        rp = await op.register("rp-1", subject="entity")
        callback = await op.sign_in(rp, "rina")
        tokens = await rp.redeem(callback)

The provider is the real one on SQLite; only its clock is the test's, and its password hashing is cheap.
"""

from __future__ import annotations

import json
import time
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from corpid import settings
from corpid.flows.directory.apply import apply_document
from corpid.rules.directory.access import CommandLine
from corpid.rules.oauth.generations import SCOPES
from corpid_dev.demo import example_directory
from corpid_dev.demo.example_directory import ExampleDirectory
from corpid_dev.relying_party import people
from corpid_dev.relying_party.interfaces import CURRENT, Interface
from corpid_dev.relying_party.jwt import RelyingPartyKeys
from tests.world import clients
from tests.world.clock import Clock
from tests.world.provider import RunningProvider, started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import httpx

    from corpid_dev.relying_party.people import Person
    from corpid_dev.relying_party.relying_party import RelyingParty
    from corpid_dev.relying_party.verification import Callback

ISSUER = "https://op.example"
PROXY = "192.0.2.250"
"""who speaks TLS for the provider; these tests stand behind it"""
PERSON_ADDRESS = "192.0.2.7"
T = TypeVar("T")


def now() -> Clock:
    """A clock that starts at the machine's time, which is the relying party's."""
    return Clock(float(int(time.time())))


@dataclass(kw_only=True)
class OpenedProvider(RunningProvider):
    """A running provider, to be filled with the example directory."""

    clock: Clock
    example: ExampleDirectory = field(default_factory=lambda: ExampleDirectory.read(example_directory.content()))

    @property
    def issuer(self) -> str:
        return self.base

    @cached_property
    def persons(self) -> dict[str, Person]:
        """By their user names."""
        return {person.user_name: person for person in self.example.persons()}

    @cached_property
    def people_http(self) -> httpx.AsyncClient:
        """Reaches the provider; no cookies are to be kept in it."""
        return self.connect(PERSON_ADDRESS)

    async def register(self, client_id: str = "rp-1", interface: Interface = CURRENT, **members: Any) -> RelyingParty:
        """A relying party with new keys, registered with every scope and service; members as in a directory file."""
        keys = RelyingPartyKeys.generate()
        rp = self.party(client_id, self.people_http, interface=interface, keys=keys)
        rp.redirect_uri = f"https://{client_id}.example/callback"
        known = {
            "name": f"Relying party {client_id}",
            "redirect_uris": [rp.redirect_uri],
            "scopes": list(SCOPES),
            "services": self.example.services(),
        }
        client = clients.members(rp.jwks(), interface, **{**known, **members})
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
        await apply_document(
            provider.registry,
            provider.passwords,
            content,
            file="test.yaml",
            actor=CommandLine(by="lee@node1"),
            new_user_id=lambda: str(uuid.uuid4()),
            plain_passwords=True,
        )

    async def sign_in(self, rp: RelyingParty, person: str, entity: str | None = None) -> Callback:
        """Begin, and sign a person of the example directory in with a new browser; the callback."""
        url = await rp.begin()
        browser = self.new_browser(PERSON_ADDRESS)
        return await people.sign_in(browser, url, self.persons[person], entity, now=self.clock)


@asynccontextmanager
async def example_provider(path: Path, **overrides: Any) -> AsyncIterator[OpenedProvider]:
    """A fresh provider with the example directory, whose data lies in `path`; overrides are settings."""
    chosen = settings.load(data_dir=path, **{"base_url": ISSUER, "trusted_proxies": (PROXY,), **overrides})
    async with started(OpenedProvider, chosen, clock=now()) as provider:
        await provider.apply(example_directory.content())
        yield provider
