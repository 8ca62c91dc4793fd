"""One of the processes of `corpid serve --workers N` is killed under load, on PostgreSQL and Redis."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from corpid_dev.relying_party.relying_party import RelyingParty
from tests.engines import postgresql_server, redis
from tests.faults.attempts import Attempt, attempt, nothing_twice
from tests.many.nodes import Nodes, running, signed_in, within
from tests.web.processes import KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = pytest.mark.full

WORKERS = 3
CALLERS = 16
FLOWS = 40
LONG = 20


class OneConnection(httpx.AsyncBaseTransport):
    """Sends every request over one connection, opened anew only when it was lost, and knows its port."""

    def __init__(self) -> None:
        self.port = 0
        self._inner = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=1))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.extensions["trace"] = self._noticed
        return await self._inner.handle_async_request(request)

    async def _noticed(self, event: str, details: dict[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            self.port = details["return_value"].get_extra_info("client_addr")[1]

    async def aclose(self) -> None:
        await self._inner.aclose()


@dataclass
class Caller:
    """A relying party and a browser with a connection each; `lost` are the ports of connections that broke."""

    rp: RelyingParty
    browsing: httpx.AsyncClient
    transports: tuple[OneConnection, OneConnection]
    lost: list[set[int]] = field(default_factory=list)

    async def call(self, attempts: list[Attempt], done: asyncio.Event) -> None:
        while not done.is_set():
            self.rp.restart()
            try:
                await attempt(self._again(), self.browsing, attempts)
            except httpx.TransportError:
                self.lost.append({transport.port for transport in self.transports})

    def _again(self) -> RelyingParty:
        """For a flow of its own, which is kept."""
        made = RelyingParty(client_id="rp-1", issuer=self.rp.issuer, http=self.rp.http, keys=KEYS)
        made.metadata = self.rp.metadata
        return made


async def caller(nodes: Nodes, stack: AsyncExitStack) -> Caller:
    transports = OneConnection(), OneConnection()
    http, browsing = [
        await stack.enter_async_context(httpx.AsyncClient(transport=each, timeout=30)) for each in transports
    ]
    browsing.cookies.update(nodes.cookies)
    rp = RelyingParty(client_id="rp-1", issuer=nodes.issuer, http=http, keys=KEYS)
    await rp.discover()
    await browsing.get(f"{nodes.issuer}/healthz")
    return Caller(rp, browsing, transports)


def workers_of(nodes: Nodes) -> list[int]:
    (first,) = nodes.processes
    return [int(child) for child in Path(f"/proc/{first}/task/{first}/children").read_text().split()]


def callers_of(process: int) -> set[int]:
    """The ports from which a process is being called."""
    sockets = {
        str(file.readlink()) for file in Path(f"/proc/{process}/fd").iterdir() if file.exists() or file.is_symlink()
    }
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(row[2].partition(":")[2], 16) for row in rows if f"socket:[{row[9]}]" in sockets}


async def callers_of_all(nodes: Nodes, stack: AsyncExitStack) -> list[Caller]:
    """Some of each worker: the first to answer takes all connections until the others do, too."""
    made: list[Caller] = []

    async def reached() -> bool:
        made[:] = [await caller(nodes, stack) for _ in range(CALLERS)]
        ports = {transport.port for each in made for transport in each.transports}
        return all(ports & callers_of(process) for process in workers_of(nodes))

    await within(LONG, reached)
    return made


def spared(callers: list[Caller], processes: list[int]) -> list[int]:
    """The processes to which not every caller is connected."""
    connections = [{transport.port for transport in each.transports} for each in callers]
    return [process for process in processes if any(not each & callers_of(process) for each in connections)]


@pytest.fixture
def nodes(tmp_path: Path, program: str) -> Iterator[Nodes]:
    server = postgresql_server()
    with (
        server.database() as name,
        redis(program) as transient_url,
        running(tmp_path, server.dsn(name), transient_url, count=1, workers=str(WORKERS)) as made,
    ):
        yield made


async def test_the_others_go_on_it_is_replaced_and_nobody_fails_but_who_was_connected_to_it(nodes: Nodes) -> None:
    """And whatever it was doing either happened or did not: nothing happens twice."""
    attempts: list[Attempt] = []

    def tokens() -> int:
        return sum(bool(one.token) for one in attempts)

    async def more() -> None:
        before = tokens()

        async def enough() -> bool:
            return tokens() >= before + FLOWS

        await within(LONG, enough)

    async def killed(callers: list[Caller]) -> set[int]:
        """The ports of those who were connected to the one that is killed."""
        ports = {transport.port for each in callers for transport in each.transports}
        victim = max(spared(callers, workers_of(nodes)), key=lambda process: len(ports & callers_of(process)))
        os.kill(victim, signal.SIGSTOP)
        connected = callers_of(victim)
        await asyncio.sleep(0.2)  # so that each of them waits for an answer
        os.kill(victim, signal.SIGKILL)

        async def replaced() -> bool:
            return len(workers_of(nodes)) == WORKERS and victim not in workers_of(nodes)

        await within(LONG, replaced)
        return connected

    async with signed_in(nodes) as person:
        done = asyncio.Event()
        async with AsyncExitStack() as stack:
            callers = await callers_of_all(nodes, stack)
            load = [asyncio.create_task(each.call(attempts, done)) for each in callers]
            await more()
            connected = await killed(callers)
            await more()
            done.set()
            await asyncio.gather(*load)
            lost = [ports for each in callers for ports in each.lost]
            assert lost
            assert all(ports & connected for ports in lost)
            assert max(len(each.lost) for each in callers) <= len(callers[0].transports)
            assert sum(not each.lost for each in callers) > 0
        http, browsing = person.https[0], person.browsers[0]
        ends = [await nothing_twice(http, browsing, one, whole=False) for one in attempts]
        assert ends.count("refused") >= 2 * FLOWS
