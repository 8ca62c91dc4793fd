"""Two nodes on PostgreSQL and Redis, as docs/operate.md sets them up, and a relying party outside."""

from __future__ import annotations

import json
import ssl
import sys
import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import httpx

from corpid_dev.relying_party import people
from corpid_dev.relying_party.browser import Browser
from corpid_dev.relying_party.interfaces import CURRENT, Interface
from corpid_dev.relying_party.relying_party import RelyingParty
from tests import engines, quick_start
from tests.machine import free_port, key_file
from tests.operate.certificates import Certified, certified
from tests.web.processes import DIRECTORY, KEYS, RINA, command, environment

if TYPE_CHECKING:
    import subprocess
    from collections.abc import AsyncIterator, Iterator, Sequence
    from pathlib import Path

    from corpid_dev.relying_party.people import Person

START_SECONDS = 90.0


@dataclass(frozen=True)
class Nodes:
    """Running nodes behind a proxy that has yet to be started on `ports` (https, http)."""

    directory: Path
    certified: Certified
    ports: tuple[int, int]
    node_ports: list[int]
    settings: dict[str, str]
    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def issuer(self) -> str:
        return self.settings["base_url"]

    def start(self, number: int) -> None:
        """Start a node and wait until it is ready."""
        port, log = str(self.node_ports[number]), self.directory / f"node-{number}.log"
        with log.open("ab") as output:
            self.processes[number] = quick_start.Popen(
                [sys.executable, "-m", "corpid", "serve"],
                cwd=self.directory, env=environment({**self.settings, "port": port}), stdout=output, stderr=output,
            )  # fmt: skip
        _until_ready(self.processes[number], port, log)

    def requests(self, number: int) -> int:
        """How many requests a node has logged, except the proxy's checks."""
        lines = (self.directory / f"node-{number}.log").read_text().splitlines()
        return sum('"event":"request"' in line and '"path":"/readyz"' not in line for line in lines)

    def stop(self, number: int) -> None:
        """Tell a node to stop and wait until it has."""
        process = self.processes.pop(number)
        process.terminate()
        process.wait(START_SECONDS)

    def trusting(self, certified: Certified) -> Nodes:
        """The same nodes, to callers who trust another authority."""
        return replace(self, certified=certified)

    def doctor(self, *arguments: str, **settings: str) -> tuple[int, dict[str, dict[str, str]]]:
        """`corpid doctor` as if on the first node: its exit status, and its findings by what they are about."""
        given = {**self.settings, "port": str(self.node_ports[0]), **settings}
        done = command(self.directory, "doctor", *arguments, "--ca", str(self.certified.authority), "--json", **given)
        assert done.stdout, done.stderr
        found: list[dict[str, str]] = json.loads(done.stdout)["findings"]
        return done.returncode, {finding["about"]: finding for finding in found}


@contextmanager
def two_nodes(
    directory: Path, content: dict[str, Any] = DIRECTORY, issuers: Sequence[dict[str, Any]] = (), /, **more: str
) -> Iterator[Nodes]:
    """On engines of their own, migrated, filled with `content` and started; `more` are settings of the nodes.

    `base_url` of a further issuer names PORT in the place of the proxy's.
    """
    own = certified(directory / "tls")
    with (
        engines.postgresql() as database_url,
        engines.redis() as transient_url,
        _nodes(
            directory,
            own,
            content,
            json.dumps(issuers),
            {"database_url": database_url, "transient_url": transient_url, **more},
        ) as nodes,
    ):
        yield nodes


@contextmanager
def _nodes(
    directory: Path, own: Certified, content: dict[str, Any], issuers: str, more: dict[str, str]
) -> Iterator[Nodes]:
    secure, plain, *node_ports = (free_port() for _ in range(4))
    chosen = {
        "base_url": f"https://localhost:{secure}",
        "trusted_proxies": "127.0.0.1",
        "key_encryption_key_file": key_file(directory / "sealing.key"),
        "drain_delay_seconds": "1",
        "hashing_threads": "1",
        "issuers": issuers.replace("PORT", str(secure)),
        **more,
    }
    nodes = Nodes(directory, own, (secure, plain), node_ports, chosen)
    (directory / "directory.json").write_text(json.dumps(content))
    for words in (("migrate",), ("apply", "directory.json", "--development")):
        done = command(directory, *words, **chosen)
        assert done.returncode == 0, done.stderr
    try:
        for number in range(len(node_ports)):
            nodes.start(number)
        yield nodes
    finally:
        for number in tuple(nodes.processes):
            nodes.stop(number)


def _until_ready(process: subprocess.Popen[bytes], port: str, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        try:
            if httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.05)
    raise AssertionError(log.read_text())


@asynccontextmanager
async def outside(
    nodes: Nodes, issuer: str = "", interface: Interface = CURRENT
) -> AsyncIterator[tuple[RelyingParty, Browser]]:
    """A relying party and somebody's browser, who know the issuer and trust the authority, and nothing else."""
    url = issuer or nodes.issuer
    trusting = ssl.create_default_context(cafile=str(nodes.certified.authority))
    options: dict[str, Any] = {"verify": trusting, "trust_env": False, "timeout": 30}
    async with httpx.AsyncClient(**options) as http, httpx.AsyncClient(**options) as browsing:
        rp = RelyingParty(client_id="rp-1", issuer=url, http=http, keys=KEYS, interface=interface)
        yield rp, Browser(browsing, frozenset({url}))


async def whole_flow(
    nodes: Nodes, issuer: str = "", interface: Interface = CURRENT, person: Person | None = None
) -> dict[str, Any]:
    """Request, sign-in, token, userinfo (LEGACY: authorization-info): what that says, verified."""
    async with outside(nodes, issuer, interface) as (rp, browser):
        callback = await people.sign_in(browser, await rp.begin(), person or replace(RINA), "A1")
        await rp.redeem(callback)
        return await rp.userinfo()
