"""Real server processes on one database, for tests of what happens between them.

As a program it is `corpid serve` with cheap password hashing and no log: `python -m tests.faults.serving
DATA_DIR BASE_URL PORT`, which says `ready` and serves until it is killed.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx

from corpid import settings
from corpid.web.http import server
from corpid.web.telemetry import access_log
from corpid_dev.relying_party import people
from corpid_dev.relying_party.browser import Browser
from corpid_dev.relying_party.people import Person
from corpid_dev.relying_party.relying_party import RelyingParty
from tests import quick_start
from tests.machine import free_port
from tests.protocol.deployment import fill
from tests.protocol.directory import PASSWORD, TOTP_SECRET
from tests.world.clients import rp_keys
from tests.world.provider import RunningProvider, started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

ROOT: Final = Path(__file__).parents[2]
DAY: Final = 86_400
DELAY: Final = 1.0
"""seconds for which a process that is told to stop goes on, so that a balancer notices"""


def chosen(data_dir: Path, base_url: str) -> dict[str, Any]:
    return {"data_dir": data_dir, "base_url": base_url, "developer_mode": True, "session_seconds": DAY}


async def main(data_dir: str, base_url: str, port: str) -> None:
    access_log.configure(clock=time.time, stream=Path(os.devnull).open("wb"))  # noqa: SIM115 - until the end
    loaded = settings.load(**chosen(Path(data_dir), base_url))
    async with started(RunningProvider, loaded, clock=time.time) as made:
        application = made.application
        running = server.Server(application.asgi, delay_seconds=DELAY, on_draining=application.asgi.drain)
        sockets = server.bind("127.0.0.1", int(port))
        await server.serve(running, sockets, on_started=lambda: print("ready", flush=True))


@dataclass
class Deployment:
    """A data directory, and processes that serve it; each listens on its own port, all have one issuer."""

    data_dir: Path
    ports: list[int]
    processes: dict[int, subprocess.Popen[str]] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)
    """of the browser in which Alice signed in, once: a code from her app works once"""

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.ports[0]}"

    def start(self, port: int) -> None:
        command = [sys.executable, "-m", "tests.faults.serving", str(self.data_dir), self.issuer, str(port)]
        process = quick_start.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.processes[port] = process
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

    def stop(self, port: int) -> int:
        """SIGTERM, and wait; the exit status."""
        process = self.processes.pop(port)
        process.send_signal(signal.SIGTERM)
        status = process.wait(60)
        assert process.stdout is not None
        process.stdout.close()
        return status

    def kill(self, port: int) -> None:
        """SIGKILL: no handler runs, nothing is flushed."""
        process = self.processes.pop(port)
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@contextmanager
def deployment(data_dir: Path, *, processes: int) -> Iterator[Deployment]:
    """A filled database and this many server processes."""
    made = Deployment(data_dir, [free_port() for _ in range(processes)])
    with ThreadPoolExecutor(1) as apart:  # the test may be on a loop of its own
        apart.submit(asyncio.run, fill(data_dir, time.time, base_url=made.issuer, developer_mode=True)).result()
    try:
        for port in made.ports:
            made.start(port)
        yield made
    finally:
        for port in list(made.processes):
            made.kill(port)


class Spread(httpx.AsyncBaseTransport):
    """Sends each request to the next process; its Host stays the issuer's."""

    def __init__(self, ports: list[int]) -> None:
        self._next = itertools.cycle(ports)
        self._inner = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=None))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(port=next(self._next))
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


@dataclass
class Outside:
    """A relying party and a signed-in browser that reach a deployment through its sockets."""

    deployment: Deployment
    http: httpx.AsyncClient
    browser: Browser

    def party(self, client_id: str = "rp-1") -> RelyingParty:
        return RelyingParty(client_id=client_id, issuer=self.deployment.issuer, http=self.http, keys=rp_keys(client_id))

    async def sign_in(self) -> None:
        person = Person(user_name="alice", password=PASSWORD, totp_secret=TOTP_SECRET)
        await people.sign_in(self.browser, await self.party().begin(), person)

    async def code(self, rp: RelyingParty) -> str:
        """A code for a new request of this relying party, by single sign-on."""
        answer = await self.browser.http.get(await rp.begin(), follow_redirects=False)
        assert answer.status_code == 302, answer.text
        return rp.callback(answer.headers["location"])


@asynccontextmanager
async def outside(made: Deployment) -> AsyncIterator[Outside]:
    """Somebody signed in as Alice."""
    async with _client(made) as http, _client(made) as browsing:
        person = Outside(made, http, Browser(browsing, frozenset({made.issuer})))
        browsing.cookies.update(made.cookies)
        if not made.cookies:
            await person.sign_in()
            made.cookies.update({cookie.name: str(cookie.value) for cookie in browsing.cookies.jar})
        yield person


def _client(made: Deployment) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=Spread(made.ports), base_url=made.issuer, timeout=30)


if __name__ == "__main__":
    server.run(main(*sys.argv[1:]))
