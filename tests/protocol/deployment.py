"""What a world is made of: its addresses, clock and keys, and a database that is filled once and copied."""

from __future__ import annotations

import asyncio
import atexit
import json
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from argon2.profiles import CHEAPEST
from joserfc.jwk import ECKey

from corpid import app, settings
from corpid.outbound.passwords import Argon2Passwords
from corpid.ports import AuditEvent, Upsert
from corpid.rules.oauth.records import Client
from corpid.sandbox.relying_party_keys import RelyingPartyKeys
from tests.protocol import directory

if TYPE_CHECKING:
    from collections.abc import Callable

ISSUER: Final = "https://op.example"
PAR: Final = f"{ISSUER}/request"
AUTHORIZE: Final = f"{ISSUER}/mga/sps/oauth/oauth20/authorize"
TOKEN: Final = f"{ISSUER}/mga/sps/oauth/oauth20/token"
USERINFO: Final = f"{ISSUER}/userinfo"
CALLBACK: Final = "https://rp.example/callback"
NOON: Final = 1_800_000_000.0
"""2027-01-15 08:00:00 UTC"""
WEEK: Final = 604_800
FAR: Final = "2099-12-31"
"""an end date that no test reaches"""
LIVE: Final = 5
"""seconds after which what another process wrote is seen (D50)"""
EVENT: Final = AuditEvent(actor="operator", action="test.change")


@dataclass(slots=True)
class Clock:
    """Time that passes when a test says so; epoch seconds."""

    now: float = NOON

    def __call__(self) -> float:
        return self.now


@cache
def rp_keys(client_id: str) -> RelyingPartyKeys:
    return RelyingPartyKeys.generate()


@cache
def other_key(curve: str = "P-256") -> ECKey:
    """A key that nobody registered and no request was bound to."""
    return ECKey.generate_key(curve)


def registered(client_id: str = "rp-1", **changes: Any) -> Client:
    """A client as it is registered: of the government, so that no consent is asked (D29)."""
    fields: dict[str, Any] = {
        "name": f"Relying Party {client_id}",
        "redirect_uris": (CALLBACK, "https://rp.example/other?kept=1"),
        "jwks": json.dumps(rp_keys(client_id).public()),
        "scopes": directory.SCOPES,
        "services": ("PERMITS", "GRANTS"),
        "sector": "government",
        **changes,
    }
    return Client(client_id=client_id, **fields)


async def fill(path: Path, clock: Callable[[], float], **options: Any) -> None:
    """Make a data directory with schema, keys, directory and two clients."""
    passwords = Argon2Passwords(threads=1, profile=CHEAPEST)
    password_hash = await passwords.hash(directory.PASSWORD)
    async with app.create(settings.load(data_dir=path, **options), clock=clock, passwords=passwords) as application:
        records = [*directory.records(password_hash), registered(), registered("rp-2")]
        await application.provider.registry.directory.write([Upsert(record) for record in records], EVENT)


@cache
def template() -> Path:
    """A filled data directory, made once and copied for each world."""
    path = Path(tempfile.mkdtemp(prefix="corpid-protocol-"))
    atexit.register(shutil.rmtree, path)
    asyncio.run(fill(path, Clock(), base_url=ISSUER, trusted_proxies=("127.0.0.1",)))
    return path
