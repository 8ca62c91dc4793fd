"""Several `corpid serve`, each on its own port, all with one issuer, on PostgreSQL and Redis."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import time
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import httpx

from corpid_dev.relying_party import people
from corpid_dev.relying_party.browser import Browser
from corpid_dev.relying_party.relying_party import RelyingParty
from tests import quick_start
from tests.machine import free_port
from tests.web.processes import DIRECTORY, KEYS, RINA, environment
from tests.web.served import PROCESS_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

WEEK = 604_800
LIVE_SECONDS = 5
START_SECONDS = 90
"""for several nodes that start at once on a busy machine"""
_RINA: dict[str, Any] = {**dict(DIRECTORY["users"])["rina"], "memberships": ["A1"]}  # type: ignore[call-overload]
FILLED: dict[str, Any] = {**DIRECTORY, "users": {"rina": _RINA}}


@dataclass(frozen=True)
class Nodes:
    """Running nodes; commands act on their database from a process of their own."""

    directory: Path
    ports: list[int]
    settings: dict[str, str]
    cookies: dict[str, str] = field(default_factory=dict)
    """of the browser in which Rina signed in, once: a code from her app works once"""
    processes: list[int] = field(default_factory=list)
    """of each node its first one"""

    @property
    def issuer(self) -> str:
        return self.settings["base_url"]

    def command(self, *arguments: str) -> str:
        done = quick_start.run(
            [sys.executable, "-m", "corpid", *arguments],
            cwd=self.directory, env=environment(self.settings), capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return str(done.stdout)

    def applied(self, **sections: Any) -> None:
        file = self.directory / "more.json"
        file.write_text(json.dumps(sections))
        self.command("apply", str(file), "--development")

    def log(self, number: int) -> list[dict[str, Any]]:
        """The lines of a node's log."""
        return [json.loads(line) for line in _log_file(self.directory, number).read_text().splitlines()]

    def at(self, number: int) -> str:
        return f"http://127.0.0.1:{self.ports[number]}"


def _log_file(directory: Path, number: int) -> Path:
    return directory / f"node-{number}.log"


class _Node(httpx.AsyncBaseTransport):
    """Reaches one node under the name of the issuer."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._inner = httpx.AsyncHTTPTransport(verify=False)  # no TLS here, and certificates take long to load

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(port=self._port)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


@contextmanager
def running(
    directory: Path, database_url: str, transient_url: str, *, count: int = 3, **settings: str
) -> Iterator[Nodes]:
    """Started all at once on an empty database, then filled. No `transient_url`: all is in PostgreSQL."""
    ports = [free_port() for _ in range(count)]
    chosen = {
        "base_url": f"http://127.0.0.1:{ports[0]}",
        "developer_mode": "true",
        "database_url": database_url,
        "transient_url": transient_url,
        "migrate_on_start": "true",
        "key_encryption_key": base64.b64encode(bytes(range(32))).decode(),
        "session_seconds": str(WEEK),
        "hashing_threads": "1",
        **settings,
    }
    nodes = Nodes(directory, ports, chosen)
    with ExitStack() as stack:
        for number, port in enumerate(ports):
            node = stack.enter_context(_serving(directory, number, {**chosen, "port": str(port)}))
            nodes.processes.append(node.pid)
        for port in ports:
            _until_ready(port)
        nodes.applied(**FILLED)
        yield nodes


@contextmanager
def _serving(directory: Path, number: int, settings: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with (
        _log_file(directory, number).open("wb") as log,
        quick_start.Popen(
            [sys.executable, "-m", "corpid", "serve"],
            cwd=directory, env=environment(settings), stdout=log, stderr=subprocess.STDOUT,
        ) as process,
    ):  # fmt: skip
        try:
            yield process
        finally:
            process.terminate()
            process.wait(PROCESS_SECONDS)


def _until_ready(port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            if httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        assert time.monotonic() < end, "a node does not become ready"
        time.sleep(0.05)


@dataclass
class Person:
    """Rina, signed in, and a relying party; each request goes to the node that is named."""

    nodes: Nodes
    https: list[httpx.AsyncClient]
    browsers: list[httpx.AsyncClient]

    def party(self, at: int) -> RelyingParty:
        return RelyingParty(client_id="rp-1", issuer=self.nodes.issuer, http=self.https[at], keys=KEYS)

    def browser(self, at: int) -> Browser:
        return Browser(self.browsers[at], frozenset({self.nodes.issuer}))

    async def code(self, rp: RelyingParty, at: int) -> str:
        answer = await self.browsers[at].get(await rp.begin(), follow_redirects=False)
        assert answer.status_code == 302, answer.text
        return rp.callback(answer.headers["location"])


@asynccontextmanager
async def new_browser(person: Person, at: int) -> AsyncIterator[Browser]:
    """A browser without cookies, whose requests go to one node."""
    async with httpx.AsyncClient(transport=_Node(person.nodes.ports[at]), timeout=30) as http:
        yield Browser(http, frozenset({person.nodes.issuer}))


@asynccontextmanager
async def signed_in(nodes: Nodes) -> AsyncIterator[Person]:
    """Signed in through the pages of the first node, with a cookie that all have in common."""
    https = [httpx.AsyncClient(transport=_Node(port), timeout=30) for port in nodes.ports]
    browsers = [httpx.AsyncClient(transport=_Node(port), timeout=30) for port in nodes.ports]
    person = Person(nodes, https, browsers)
    try:
        if not nodes.cookies:
            await sign_in(person)
        for browser in browsers:
            browser.cookies.update(nodes.cookies)
        yield person
    finally:
        for client in (*https, *browsers):
            await client.aclose()


async def sign_in(person: Person) -> None:
    """Through the pages of the first node, with new cookies for all."""
    for browser in person.browsers:
        browser.cookies.clear()
    await people.sign_in(person.browser(0), await person.party(0).begin(), replace(RINA), "A1")
    person.nodes.cookies.update({cookie.name: str(cookie.value) for cookie in person.browsers[0].cookies.jar})
    person.browsers[0].cookies.clear()
    for browser in person.browsers:
        browser.cookies.update(person.nodes.cookies)


async def within_five_seconds(holds: Any) -> None:
    """Ask again until it holds; D50 gives it five seconds from the answer that the change got."""
    await within(LIVE_SECONDS, holds)


async def within(seconds: float, holds: Any) -> None:
    """Ask again until it holds; it is asked for the last time before they are over."""
    end = time.monotonic() + seconds
    while True:
        assert time.monotonic() < end, f"{seconds} seconds have passed"
        if await holds():
            return
        await asyncio.sleep(0.05)


async def is_ready(person: Person, number: int) -> bool:
    return (await person.https[number].get(person.nodes.at(number) + "/readyz")).status_code == 200
