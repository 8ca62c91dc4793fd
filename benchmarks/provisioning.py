"""What a sign-in costs beside a client that provisions people through SCIM, one request after the other (D60)."""

from __future__ import annotations

import asyncio
import json
import secrets
import statistics
import time
from typing import TYPE_CHECKING, Any

from benchmarks import fill
from benchmarks.http_client import Client
from benchmarks.load import Cost
from benchmarks.steps import require
from corpid.engines import new_user_id
from corpid.flows.directory.provisioning import add_token
from corpid.rules.directory.access import CommandLine
from corpid.rules.directory.records import Change, Entity
from corpid.stores.sql.open import open_postgresql

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from benchmarks.fill import Size
    from benchmarks.relying_party import Flow
    from benchmarks.stage import Stage
    from corpid.stores.encryption_at_rest import SecretCipher

POSTS, LEAST_POSTS = 20_000, 50
"""people provisioned on the large database, and on a small one"""
ENTITY_ID = "PROVISIONED"
UNLIMITED = {"CORPID_SCIM_PER_CLIENT": "0"}
"""settings of a provider whose client is not slowed: the heaviest load that one request after the other can be"""
_USER = "urn:ietf:params:scim:schemas:core:2.0:User"
_BLOCK = 10
"""sign-ins for which assertions are made at a time"""


class Provisioning:
    """A client that adds people to the entity of its token, and what that took."""

    def __init__(self, stage: Stage, token: str) -> None:
        self.cost = Cost()
        self._root = f"{stage.maker.endpoints.issuer}/scim/v2/Users"
        self._head = f"Authorization: Bearer {token}\r\nContent-Type: application/scim+json\r\n"
        self._client = Client(stage.maker.endpoints.issuer)
        self._number = 0

    async def post(self) -> None:
        """Add one more user. Raises steps.Wrong, OSError, TimeoutError."""
        name = f"provisioned{self._number:05}@company.example"
        self._number += 1
        user = {
            "schemas": [_USER],
            "userName": name,
            "externalId": str(self._number),
            "name": {"givenName": "Person", "familyName": str(self._number)},
            "emails": [{"value": name, "type": "work", "primary": True}],
            "active": True,
        }
        begun = time.perf_counter()
        answer = await self._client.fetch(self._root, "POST", self._head, json.dumps(user).encode())
        self.cost.latencies.append(time.perf_counter() - begun)
        self.cost.count += 1
        require("SCIM", answer.status == 201, f"status {answer.status}: {answer.body[:200]!r}")

    async def until(self, posts: int, enough: asyncio.Event) -> None:
        """Add people until there are so many of them, and the event has come."""
        while self.cost.count < posts or not enough.is_set():
            await self.post()

    def close(self) -> None:
        self._client.close()


async def figures(
    dsn: str,
    cipher: SecretCipher,
    stage: Stage,
    sign_in: Callable[[Flow], Awaitable[None]],
    *,
    size: Size,
    sign_ins: int,
) -> dict[str, Any]:
    """Sign-ins alone, people added alone, and both at once, each one after the other. Raises steps.Wrong.

    Times are milliseconds: CPU of the provider's loop, and latencies at the clients.
    """
    posts = max(LEAST_POSTS, POSTS * size.users // fill.USERS)
    client = Provisioning(stage, await _token(dsn, cipher))
    try:
        for _ in range(_BLOCK):
            await client.post()  # warm
        sign_in_alone = await _sign_ins(stage, sign_in, sign_ins)
        client.cost = post_alone = Cost()
        begun = stage.provider.loop_seconds()
        await client.until(LEAST_POSTS, _already())
        post_alone.cpu_seconds = stage.provider.loop_seconds() - begun
        client.cost = post_beside = Cost()
        sign_in_beside, loop_seconds = await _both(stage, sign_in, client, posts=posts, sign_ins=sign_ins)
    finally:
        client.close()
    expected = sum(
        alone.cpu_seconds / alone.count * beside.count
        for alone, beside in ((sign_in_alone, sign_in_beside), (post_alone, post_beside))
    )
    return {
        "sign_in": sign_in_alone.figures(),
        "sign_in_beside": sign_in_beside.figures(),
        "post": post_alone.figures(),
        "post_beside": post_beside.figures(),
        "slower": round(statistics.median(sign_in_beside.latencies) / statistics.median(sign_in_alone.latencies), 3),
        "cpu_ratio": round(loop_seconds / expected, 3),
    }


def _already() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


async def _sign_ins(stage: Stage, sign_in: Callable[[Flow], Awaitable[None]], count: int) -> Cost:
    """So many sign-ins, one after the other, with the CPU of the loop meanwhile."""
    cost = Cost()
    while cost.count < count:
        flows = await stage.workshop.flows(min(_BLOCK, count - cost.count))
        before = stage.provider.loop_seconds()
        for flow in flows:
            begun = time.perf_counter()
            await sign_in(flow)
            cost.latencies.append(time.perf_counter() - begun)
            cost.count += 1
        cost.cpu_seconds += stage.provider.loop_seconds() - before
    return cost


async def _both(
    stage: Stage, sign_in: Callable[[Flow], Awaitable[None]], client: Provisioning, *, posts: int, sign_ins: int
) -> tuple[Cost, float]:
    """Both at once, until each was done as often as wanted: the sign-ins, and the CPU of the loop for everything."""
    enough, cost = asyncio.Event(), Cost()
    begun = stage.provider.loop_seconds()
    provisioning = asyncio.create_task(client.until(posts, enough))
    try:
        while not provisioning.done() and (cost.count < sign_ins or client.cost.count < posts):
            cost.add(await _sign_ins(stage, sign_in, min(_BLOCK, sign_ins)))
        enough.set()
        await provisioning
    finally:
        provisioning.cancel()
    return cost, stage.provider.loop_seconds() - begun


async def _token(dsn: str, cipher: SecretCipher) -> str:
    """A new token of a new entity."""
    token, actor, now = secrets.token_urlsafe(32), CommandLine(by="benchmark@localhost"), time.time()
    entity = Entity(
        entity_id=ENTITY_ID, type="UEN", registration_number=ENTITY_ID, country="SG", name="The Provisioned"
    )
    stores = await open_postgresql(dsn, cipher, time.time)
    try:
        await stores.registry.directory.write([Change(None, entity)])
        await add_token(
            stores.registry, ENTITY_ID, "Benchmark", days=1, token=token, token_id=new_user_id(), actor=actor, now=now
        )
    finally:
        await stores.close()
    return token
