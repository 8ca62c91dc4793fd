"""Orders of the sandbox in tests: a demo whose developer mode is at hand, and whose waits only move the clock."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from corpid_dev.relying_party.verification import Callback, CheckFailed, ProviderError
from tests.developer.scene import developer, order
from tests.sign_in.world import BASE, KEYS, World, new_world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

    from corpid_dev.flows.people import Developer
    from corpid_dev.relying_party.relying_party import RelyingParty

ORDERS: Final = f"{BASE}/developer/orders"
ALICE: Final = {"user": "alice", "entity": "200000001A"}


@asynccontextmanager
async def sandbox_world(**options: Any) -> AsyncIterator[tuple[World, Developer]]:
    """A demo and its developer mode; an answer that is held back moves the clock."""
    mode = developer()
    waiting = _Waiting(mode)
    async with new_world(developer=mode, **options) as made:
        waiting.made = made
        yield made, mode


class _Waiting:
    def __init__(self, mode: Developer) -> None:
        self.made: World | None = None
        mode.sleep = self

    async def __call__(self, seconds: float) -> None:
        assert self.made is not None
        self.made.clock.now += seconds


async def place(made: World, members: dict[str, Any]) -> httpx.Response:
    return await (await made.http()).post(ORDERS, json=members)


async def placed(made: World, name: str, client_id: str | None = "rp1", **members: Any) -> dict[str, Any]:
    """Place an order; what the provider says of it."""
    answer = await place(made, {"client_id": client_id, "order": name, **members})
    assert answer.status_code == 201, answer.text
    document: dict[str, Any] = answer.json()
    return document


async def party(made: World, client_id: str = "rp1", **options: Any) -> RelyingParty:
    scope = "openid authinfo" if made.interface.pushed else "openid"
    return made.party(client_id, made.connect("192.0.2.1"), keys=KEYS, **{"scope": scope, **options})


async def called_back(made: World, rp: RelyingParty, **members: Any) -> Callback:
    """Sign Alice in at once; where her browser would go."""
    url = await rp.begin()
    answer = await order(made, {"authorize_url": url, **ALICE, **members})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    form = None
    if "form" in found:
        listed = {name: value if isinstance(value, list) else [value] for name, value in found["form"].items()}
        form = [(name, value) for name, values in listed.items() for value in values]
    return Callback(found["callback_url"], form)


async def outcome(made: World, rp: RelyingParty, **members: Any) -> str:
    """Sign in up to userinfo; `session`, or what the relying party says against it."""
    try:
        await rp.redeem(await called_back(made, rp, **members))
        await rp.userinfo()
    except CheckFailed as failed:
        return str(failed)
    except ProviderError as failed:
        return f"{failed.where}: {failed.error}"
    return "session"
