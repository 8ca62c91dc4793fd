"""A relying party with a key set, and the part of a registry that keeps what was fetched from it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric import ec

from corpid.jose.encoding import base64url
from corpid.outbound.destinations import HttpClientError
from corpid.rules.failures import StoreUnavailable
from corpid.rules.oauth.records import Client, FetchedKeySet

if TYPE_CHECKING:
    from corpid.jose.keys import ClientKeySet
    from corpid.rules.audit import AuditEvent

URL = "https://rp.example/jwks"
T = 1_800_000_000.0
HOUR = 3600
DAY = 86400


def jwks(*kids: str, **members: str) -> bytes:
    keys = []
    for kid in kids:
        numbers = ec.derive_private_key(len(kid) + ord(kid[-1]), ec.SECP256R1()).public_key().public_numbers()
        point = {"x": base64url(numbers.x.to_bytes(32, "big")), "y": base64url(numbers.y.to_bytes(32, "big"))}
        keys.append({"kty": "EC", "crv": "P-256", "use": "sig", "kid": kid, **point, **members})
    return json.dumps({"keys": keys}, separators=(",", ":")).encode()


def kids(key_set: ClientKeySet) -> list[str | None]:
    return [key.kid for key in key_set.signing]


def client(jwks_uri: str | None = URL, inline: str | None = None, client_id: str = "rp") -> Client:
    return Client(
        client_id=client_id, name="RP", redirect_uris=("https://rp.example/cb",), jwks=inline, jwks_uri=jwks_uri
    )


@dataclass(slots=True)
class Kept:
    """The part of a registry that keeps fetched key sets, shared by processes and restarts."""

    sets: dict[str, FetchedKeySet] = field(default_factory=dict)
    reads: int = 0
    down: bool = False

    async def fetched_key_set(self, client_id: str) -> FetchedKeySet | None:
        self._demand_up()
        self.reads += 1
        await asyncio.sleep(0)
        return self.sets.get(client_id)

    async def keep_fetched_key_set(self, client_id: str, fetched: FetchedKeySet) -> None:
        self._demand_up()
        self.sets[client_id] = fetched

    async def drop_fetched_key_set(self, client_id: str, event: AuditEvent) -> None:
        self._demand_up()
        self.sets.pop(client_id, None)

    async def get(self, client_id: str) -> Client | None:
        return None

    async def list_all(self) -> list[Client]:
        return []

    async def named(self, *, first: str, until: str, limit: int) -> list[Client]:
        return []

    def _demand_up(self) -> None:
        if self.down:
            raise StoreUnavailable("down")


@dataclass(slots=True)
class RelyingParty:
    """What stands at the URLs; `gate` holds answers back."""

    body: bytes = field(default_factory=lambda: jwks("one"))
    down: bool = False
    fetches: list[str] = field(default_factory=list)
    gate: asyncio.Event | None = None

    async def fetch(self, url: str) -> bytes:
        self.fetches.append(url)
        if self.gate is not None:
            await self.gate.wait()
        if self.down:
            raise HttpClientError("no connection to rp.example")
        return self.body


async def settled() -> None:
    """Let what runs in the background come to its end."""
    for _ in range(20):
        await asyncio.sleep(0)
