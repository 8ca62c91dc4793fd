"""Two versions serve one PostgreSQL database while its schema goes from the one's to the other's."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx
import pytest

from corpid.stores.sql import schema
from tests import quick_start
from tests.engines import PostgresServer, postgresql_server
from tests.machine import free_port
from tests.many.nodes import FILLED, WEEK, Nodes, Person, signed_in
from tests.web.processes import environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


STARTED_SECONDS = 100
PEOPLE = 50_000
FLOWS_AT_ONCE = 2
BETWEEN_FLOWS = 0.1
"""seconds; so that the commands get some of the processor as well"""
MOST_FLOWS = 5000
ADD_PEOPLE = f"""
INSERT INTO users (user_id, user_name, user_name_key, name, email, language, identity_number, identity_country, account_type, enabled)
SELECT 'u' || n, 'u' || n, 'u' || n, 'NAME', '', 'en', '', '', '', TRUE FROM generate_series(1, {PEOPLE}) n
"""


@dataclass
class Upgrade:
    """A deployment on its way: nodes of this version and of the later one, and who of them is asked."""

    nodes: Nodes
    server: PostgresServer
    database: str
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    turn: itertools.count[int] = field(default_factory=itertools.count)

    def command(self, *arguments: str, later: bool) -> list[str]:
        return [sys.executable, "-m", "tests.upgrades.later" if later else "corpid", *arguments]

    def ran(self, *arguments: str, later: bool) -> subprocess.CompletedProcess[str]:
        return quick_start.run(
            self.command(*arguments, later=later),
            env=environment(self.nodes.settings), capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip

    def start(self, at: int, *, later: bool) -> None:
        settings = {**self.nodes.settings, "port": str(self.nodes.ports[at])}
        with (self.nodes.directory / f"node-{at}.log").open("ab") as log:
            self.running[at] = quick_start.Popen(
                self.command("serve", later=later), env=environment(settings), stdout=log, stderr=log
            )
        end = time.monotonic() + STARTED_SECONDS
        while not _is_ready(self.nodes.ports[at]):
            assert self.running[at].poll() is None, (self.nodes.directory / f"node-{at}.log").read_text()
            assert time.monotonic() < end, "a node does not become ready"
            time.sleep(0.05)
        self.asked.append(at)

    def stop(self, at: int) -> None:
        """As a balancer does it: first nobody asks it any more."""
        self.asked.remove(at)
        process = self.running.pop(at)
        process.send_signal(signal.SIGTERM)
        assert process.wait(STARTED_SECONDS) == 0

    def end(self) -> None:
        """Whatever still runs after a test that failed."""
        for process in self.running.values():
            process.kill()
            process.wait()

    def next(self) -> int:
        return self.asked[next(self.turn) % len(self.asked)]

    def sql(self, statement: str) -> str:
        return self.server.sql(statement, self.database)


def _is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


@contextmanager
def upgrading(tmp_path: Path) -> Iterator[Upgrade]:
    server = postgresql_server()
    ports = [free_port() for _ in range(4)]
    with server.migrated() as name, ExitStack() as stack:
        settings = {
            "base_url": f"http://127.0.0.1:{ports[0]}",
            "data_dir": str(tmp_path / "data"),
            "developer_mode": "true",
            "database_url": server.dsn(name),
            "key_encryption_key": base64.b64encode(bytes(range(32))).decode(),
            "session_seconds": str(WEEK),
            "hashing_threads": "1",
            "drain_delay_seconds": "1",
        }
        made = Upgrade(Nodes(tmp_path, ports, settings), server, name)
        stack.callback(made.end)
        made.sql(ADD_PEOPLE)
        made.nodes.applied(**FILLED)
        yield made


async def _flows(made: Upgrade, person: Person, done: asyncio.Event) -> int:
    """Whole sign-ins, each request at the next node; the first that fails ends the test."""
    for count in range(MOST_FLOWS):
        if done.is_set():
            return count
        rp = person.party(made.next())
        code = await person.code(rp, made.next())
        rp.http = person.https[made.next()]
        answer = await rp.token(code)
        assert answer.status_code == 200, answer.text
        rp.http = person.https[made.next()]
        answer = await rp.resource("GET", access_token=answer.json()["access_token"])
        assert answer.status_code == 200, answer.text
        await asyncio.sleep(BETWEEN_FLOWS)
    raise AssertionError("the load ended before the upgrade")


async def _upgraded(made: Upgrade) -> None:
    """The story of docs/upgrades.md, each command in a process of its own."""

    async def done(*arguments: str, later: bool = True) -> str:
        answer = await asyncio.to_thread(made.ran, *arguments, later=later)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout

    plan = json.loads(await done("migrate", "--plan", "--json"))
    assert [step["phase"] for step in plan["now"]] == ["expand", "expand", "fill"]
    assert plan["now"][2]["rows"] > PEOPLE
    assert made.sql("SELECT version_num FROM alembic_version") == schema.find_head()
    assert "run `corpid migrate --contract`" in await done("migrate")
    assert made.sql("SELECT count(*) FROM users WHERE sort_name IS NULL") == "0"
    await asyncio.to_thread(made.start, 2, later=True)
    await asyncio.to_thread(made.stop, 0)
    await asyncio.to_thread(made.start, 0, later=False)
    refused = await asyncio.to_thread(made.ran, "migrate", "--contract", later=True)
    assert (refused.returncode, "servers of a version before" in refused.stderr) == (1, True), refused.stderr
    await asyncio.to_thread(made.start, 3, later=True)
    for at in (0, 1):
        await asyncio.to_thread(made.stop, at)
    await done("migrate", "--contract")


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_two_versions_serve_side_by_side_through_a_whole_upgrade_and_no_request_fails(tmp_path: Path) -> None:
    """Expand and fill under load, nodes replaced one by one, contract under load; then the version before is refused."""

    async def story(made: Upgrade) -> list[int]:
        ended = asyncio.Event()
        async with signed_in(made.nodes) as person:
            load = [asyncio.create_task(_flows(made, person, ended)) for _ in range(FLOWS_AT_ONCE)]
            upgrade = asyncio.create_task(_upgraded(made))
            await asyncio.wait([upgrade, *load], return_when=asyncio.FIRST_COMPLETED)
            ended.set()
            counts = await asyncio.gather(*load)
            await upgrade
            return counts

    with upgrading(tmp_path) as made:
        for at in (0, 1):
            made.start(at, later=False)
        counts = await story(made)
        assert min(counts) > 0
        refused = made.ran("serve", later=False)
        assert (refused.returncode, "can use it no longer" in refused.stderr) == (1, True), refused.stderr


@pytest.mark.full
def test_ctrl_c_stops_a_fill_after_its_batch_and_the_next_command_goes_on(tmp_path: Path) -> None:
    with upgrading(tmp_path) as made:
        process = quick_start.Popen(
            made.command("migrate", later=True), env=environment(made.nodes.settings),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        while not made.sql("SELECT value FROM deployment WHERE name = 'fill_9003'"):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=60)
        assert (process.returncode, "stopped after" in complaint) == (1, True), complaint
        filled = int(made.sql("SELECT count(*) FROM users WHERE sort_name IS NOT NULL"))
        assert 0 < filled < PEOPLE
        done = made.ran("migrate", later=True)
        assert done.returncode == 0, done.stderr
        assert f"9003: {PEOPLE + 1 - filled:,} rows of users walked" in done.stdout
