"""What a world is made of: its addresses, clock and keys, and a database that is filled once and copied."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from joserfc.jwk import ECKey

from corpid import settings
from tests.protocol import directory
from tests.world import clients
from tests.world.clients import CALLBACK
from tests.world.clock import Clock
from tests.world.provider import RunningProvider, started, temporary_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from corpid.rules.oauth.records import Client

ISSUER: Final = "https://op.example"
PAR: Final = f"{ISSUER}/request"
AUTHORIZE: Final = f"{ISSUER}/mga/sps/oauth/oauth20/authorize"
TOKEN: Final = f"{ISSUER}/mga/sps/oauth/oauth20/token"
USERINFO: Final = f"{ISSUER}/userinfo"
WEEK: Final = 604_800
LIVE: Final = 5
"""seconds after which what another process wrote is seen (D50)"""


@cache
def other_key(curve: str = "P-256") -> ECKey:
    """A key that nobody registered and no request was bound to."""
    return ECKey.generate_key(curve)


def registered(client_id: str = "rp-1", **changes: Any) -> Client:
    """A client as it is registered, for everything that the directory has."""
    known: dict[str, Any] = {
        "redirect_uris": (CALLBACK, "https://rp.example/other?kept=1"),
        "scopes": directory.SCOPES,
        "services": ("PERMITS", "GRANTS"),
    }
    return clients.record(client_id, **{**known, **changes})


async def fill(path: Path, clock: Callable[[], float], **options: Any) -> None:
    """Make a data directory with schema, keys, directory and two clients."""
    async with started(RunningProvider, settings.load(data_dir=path, **options), clock=clock) as made:
        password_hash = await made.passwords.hash(directory.PASSWORD)
        await made.write(*directory.records(password_hash), registered(), registered("rp-2"))


@cache
def template() -> Path:
    """A filled data directory, made once and copied for each world."""
    path = temporary_directory()
    asyncio.run(fill(path, Clock(), base_url=ISSUER, trusted_proxies=("127.0.0.1",)))
    return path
