"""PostgreSQL has no connection to give, under load: bounded waiting, then told to retry, and afterwards it goes on."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import asyncpg
import pytest

from tests.engines import PostgresServer
from tests.faults.attempts import Attempt, Failed, attempt, nothing_twice, told_to_retry
from tests.many.nodes import Nodes, Person, is_ready, running, signed_in, within

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    import httpx

    Story = Callable[[Person], Awaitable[None]]

pytestmark = pytest.mark.full

CONNECTIONS = 3
"""of the node to its database"""
AT_ONCE = 60
LONG = 20
END_THEM = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'corpid%' AND pid <> pg_backend_pid()"
HOW_MANY = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'corpid%'"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One whose connections are few."""
    with PostgresServer("max_connections = 16") as started:
        yield started


@pytest.fixture(scope="module")
def nodes(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """One node, with everything in PostgreSQL."""
    folder = tmp_path_factory.mktemp("few")
    with (
        server.database() as name,
        running(folder, server.dsn(name), "", count=1, database_connections=str(CONNECTIONS)) as made,
    ):
        yield made


@asynccontextmanager
async def signed_in_till_ready(nodes: Nodes) -> AsyncIterator[Person]:
    """Somebody who is signed in; afterwards the node is ready again and answers."""
    async with signed_in(nodes) as person:
        yield person
        await within(LONG, lambda: is_ready(person, 0))
        assert (await person.party(0).push()).status_code == 201


async def pushed(person: Person, times: int) -> list[httpx.Response]:
    parties = [person.party(0) for _ in range(times)]
    for party in parties[:1]:
        await party.discover()
    for party in parties:
        party.metadata = parties[0].metadata
    return list(await asyncio.gather(*(party.push() for party in parties)))


async def test_more_requests_than_connections_wait_their_turn(nodes: Nodes) -> None:
    async with signed_in_till_ready(nodes) as person:
        answers = await pushed(person, AT_ONCE)
        for answer in answers:
            if answer.status_code != 201:
                told_to_retry(answer)
        assert Counter(answer.status_code for answer in answers)[201] >= CONNECTIONS


async def test_while_every_connection_is_held_up_everybody_is_told_to_retry(nodes: Nodes) -> None:
    """Neither for ever nor one after the other: who gets no connection within seconds is refused."""
    async with signed_in_till_ready(nodes) as person:
        other = await asyncpg.connect(nodes.settings["database_url"])
        async with other.transaction():
            await other.execute("LOCK TABLE transient IN ACCESS EXCLUSIVE MODE")
            for answer in await pushed(person, AT_ONCE):
                told_to_retry(answer)
        await other.close()


@asynccontextmanager
async def every_connection(url: str) -> AsyncIterator[None]:
    """Others take each connection that the server has, also those that the node had."""
    async with AsyncExitStack() as held:
        first = await asyncpg.connect(url)
        held.push_async_callback(first.close)
        while True:
            try:
                another = await asyncpg.connect(url, timeout=5)
            except asyncpg.TooManyConnectionsError:
                if not await first.fetchval(HOW_MANY):
                    break
                await first.execute(END_THEM)
            else:
                held.push_async_callback(another.close)
        yield


async def test_while_others_have_every_connection_everybody_is_told_to_retry(nodes: Nodes) -> None:
    """max_connections is reached."""
    async with signed_in_till_ready(nodes) as person, every_connection(nodes.settings["database_url"]):
        for answer in await pushed(person, AT_ONCE):
            told_to_retry(answer)

        async def is_told() -> bool:
            answer = await person.https[0].get(nodes.at(0) + "/readyz")
            return (answer.status_code, answer.json().get("part")) == (503, "database")

        await within(LONG, is_told)  # probes of one second share an answer


async def test_connections_that_are_ended_again_and_again_make_nothing_happen_twice(nodes: Nodes) -> None:
    """What a request had begun when its connection went either happened or did not."""
    attempts: list[Attempt] = []
    failures: list[httpx.Response] = []

    async def flows(person: Person, done: asyncio.Event) -> None:
        while not done.is_set():
            try:
                await attempt(person.party(0), person.browsers[0], attempts)
            except Failed as failure:
                failures.append(failure.answer)

    async with signed_in_till_ready(nodes) as person:
        done = asyncio.Event()
        load = [asyncio.create_task(flows(person, done)) for _ in range(4)]
        other = await asyncpg.connect(nodes.settings["database_url"])
        for _ in range(20):
            await other.execute(END_THEM)
            await asyncio.sleep(0.1)
        await other.close()
        done.set()
        await asyncio.gather(*load)
        for answer in failures:
            told_to_retry(answer)
        ends = Counter([await nothing_twice(person.https[0], person.browsers[0], one, whole=False) for one in attempts])
        assert ends["refused"] > 0
    assert failures
