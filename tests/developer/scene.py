"""A demo's provider in the test's own process: Alice is a test person, Bob is not (D66)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from corpid.rules.directory.records import ListedTestPerson
from corpid_dev.flows.people import Developer
from tests.sign_in.world import BASE, World, new_world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    import httpx

    from corpid_dev.flows.readiness_runs import Runs

KEY: Final = "the-key-of-this-start"
SIGN_INS: Final = f"{BASE}/developer/sign-ins"


def developer(
    own_clients: Iterable[str] = (), *, spares_loopback: bool = True, readiness: Runs | None = None
) -> Developer:
    made = Developer(key=KEY, own_clients=frozenset(own_clients), spares_loopback=spares_loopback, readiness=readiness)
    made.add([ListedTestPerson(user_name="alice", name="Alice Tan", entities=("200000001A", "200000002A"))])
    return made


@asynccontextmanager
async def demo_world(
    *, spares_loopback: bool = True, readiness: Runs | None = None, **options: Any
) -> AsyncIterator[World]:
    """The world of a demo."""
    mode = developer(spares_loopback=spares_loopback, readiness=readiness)
    async with new_world(developer=mode, **options) as made:
        yield made


async def order(made: World, members: object, *, address: str = "127.0.0.1", **headers: str) -> httpx.Response:
    """Send an order to sign a test person in."""
    http = await made.http(address)
    return await http.post(
        SIGN_INS, json=members, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )
