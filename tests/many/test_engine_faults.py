"""An engine goes away under load and comes back: meanwhile a clear answer, afterwards everything by itself (issue: faults)."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.engines import PostgresServer, RedisServer
from tests.many.nodes import running, signed_in, within, within_five_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.many.nodes import Nodes, Person

pytestmark = pytest.mark.full

FORGOTTEN_SECONDS = 60
"""after an engine has forgotten, what may have been issued before is refused for a while"""
LIVE = 5
PARTS = {"redis": "short-lived state", "postgresql": "database"}


@pytest.fixture
def engines() -> Iterator[dict[str, Any]]:
    """Engines of the test's own, which it may stop."""
    with PostgresServer() as postgresql, RedisServer() as redis:
        # An engine that is no older than the deployment might have forgotten something of it.
        time.sleep(2)
        yield {"postgresql": postgresql, "redis": redis}


@pytest.mark.parametrize(
    ("engine", "how"),
    # A PostgreSQL that hangs is a matter of each of its processes: tests/adapters has it.
    [("redis", "stop"), ("redis", "crash"), ("redis", "pause"), ("postgresql", "stop"), ("postgresql", "crash")],
)
def test_while_an_engine_is_away_everybody_is_told_to_retry_and_then_it_goes_on(
    tmp_path: Path, engines: dict[str, Any], engine: str, how: str
) -> None:
    """503 temporarily_unavailable with Retry-After; /readyz says which part; no restart, and no code twice."""
    server = engines[engine]

    async def story(person: Person) -> None:
        stopped, nodes = asyncio.Event(), person.nodes
        done = [0, 0]
        load = [asyncio.create_task(_flows(person, number, stopped, done)) for number in range(2)]
        await within_five_seconds(lambda: _all(done))
        await asyncio.to_thread(getattr(server, how))
        for number in range(2):
            await within_five_seconds(lambda number=number: _says(nodes, number, 503, PARTS[engine]))
        await within(2 * LIVE, lambda: _told_to_retry(person))
        await asyncio.to_thread(server.resume if how == "pause" else server.start)
        for number in range(2):
            await within_five_seconds(lambda number=number: _says(nodes, number, 200, None))
        for number in range(2):
            await within(FORGOTTEN_SECONDS, lambda number=number: _accepted(person, number))
        stopped.set()
        refused = {status for each in await asyncio.gather(*load) for status in each}
        assert refused <= {401, 503}

    database = engines["postgresql"].dsn()
    with running(tmp_path, database, engines["redis"].url, count=2) as nodes:

        async def run() -> None:
            async with signed_in(nodes) as person:
                await story(person)

        asyncio.run(run())


async def _says(nodes: Nodes, number: int, status: int, part: str | None) -> bool:
    async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
        answer = await http.get(f"{nodes.at(number)}/readyz")
    return answer.status_code == status and answer.json().get("part") == part


async def _flows(person: Person, at: int, stopped: asyncio.Event, done: list[int]) -> list[int]:
    """Count the codes that became tokens; a code never becomes two. Returns how pushes were refused."""
    refused = []
    while not stopped.is_set():
        rp = person.party(at)
        await rp.discover()
        pushed = await rp.push()
        if pushed.status_code != 201:
            refused.append(pushed.status_code)
            await asyncio.sleep(0.05)
            continue
        rp.sign_in.request_uri = pushed.json()["request_uri"]
        answer = await person.browsers[at].get(rp.authorization_url(), follow_redirects=False)
        if answer.status_code != 302 or "code=" not in answer.headers["location"]:
            continue
        code = rp.callback(answer.headers["location"])
        answers = await asyncio.gather(*(rp.token(code) for _ in range(2)))
        tokens = [one for one in answers if one.status_code == 200]
        assert len(tokens) <= 1
        done[at] += len(tokens)
    return refused


async def _told_to_retry(person: Person) -> bool:
    """What a process remembers of clients lasts five seconds."""
    answer = await person.party(0).push()
    if answer.status_code == 201:
        return False
    assert (answer.status_code, answer.json()["error"]) == (503, "temporarily_unavailable")
    return int(answer.headers["retry-after"]) > 0


async def _all(done: list[int]) -> bool:
    return all(done)


async def _accepted(person: Person, number: int) -> bool:
    return (await person.party(number).push()).status_code == 201
