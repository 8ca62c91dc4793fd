"""Nodes behind a balancer that asks /readyz are stopped one after the other under load, and no request fails."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx
import pytest

from corpid_dev.relying_party.browser import Browser
from tests.faults.serving import Deployment, Outside, Spread, deployment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


pytestmark = pytest.mark.full

ASKED_EVERY = 0.1
FLOWS_AT_ONCE = 4


class Balancer(Spread):
    """Sends requests to the nodes that say they are ready, in turn; it retries nothing."""

    def __init__(self, ports: list[int]) -> None:
        super().__init__(ports)
        self.ports = ports
        self.ready = list(ports)

    def turn(self) -> int:
        self.ready.append(self.ready.pop(0))
        return self.ready[-1]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(port=self.turn())
        return await self._inner.handle_async_request(request)

    async def watch(self) -> None:
        async with httpx.AsyncClient(trust_env=False, timeout=1) as http:
            while True:
                for port in self.ports:
                    ready = await _is_ready(http, port)
                    if ready != (port in self.ready):
                        (self.ready.append if ready else self.ready.remove)(port)
                await asyncio.sleep(ASKED_EVERY)


async def _is_ready(http: httpx.AsyncClient, port: int) -> bool:
    try:
        return (await http.get(f"http://127.0.0.1:{port}/readyz")).status_code == 200
    except httpx.HTTPError:
        return False


@asynccontextmanager
async def balanced(made: Deployment) -> AsyncIterator[Outside]:
    balancer = Balancer(made.ports)
    async with (
        httpx.AsyncClient(transport=balancer, timeout=30) as http,
        httpx.AsyncClient(transport=balancer, timeout=30) as browsing,
    ):
        person = Outside(made, http, Browser(browsing, frozenset({made.issuer})))
        await person.sign_in()
        watching = asyncio.create_task(balancer.watch())
        try:
            yield person
        finally:
            watching.cancel()


async def _flows(person: Outside, done: asyncio.Event) -> int:
    count = 0
    while not done.is_set():
        rp = person.party()
        answer = await rp.token(await person.code(rp))
        assert answer.status_code == 200, answer.text
        assert (await rp.resource("GET", access_token=answer.json()["access_token"])).status_code == 200
        count += 1
    return count


async def test_no_request_fails_while_every_node_is_restarted(tmp_path: Path) -> None:
    async def story(made: Deployment) -> list[int]:
        done = asyncio.Event()
        async with balanced(made) as person:
            load = [asyncio.create_task(_flows(person, done)) for _ in range(FLOWS_AT_ONCE)]
            for port in made.ports:
                assert await asyncio.to_thread(made.stop, port) == 0
                await asyncio.to_thread(made.start, port)
                await asyncio.sleep(5 * ASKED_EVERY)
            done.set()
            return await asyncio.gather(*load)

    with deployment(tmp_path, processes=2) as made:
        counts = await story(made)
    assert min(counts) > 0
