"""/readyz writes to each engine, since one that is full or read-only can still be read (D49)."""

from __future__ import annotations

import asyncio
import base64
import sqlite3
import time
from contextlib import AsyncExitStack, asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import redis

from corpid import app, settings
from tests.engines import PostgresServer, RedisServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    Story = Callable[["Probe"], Awaitable[None]]

BASE = "http://localhost:8080"
KEY = base64.b64encode(bytes(range(32))).decode()
READY = (200, {"status": "ready"})


class Probe:
    """A process, and what a load balancer is told by it."""

    def __init__(self, http: httpx.AsyncClient, passed: list[float]) -> None:
        self._http = http
        self._passed = passed

    async def says(self) -> tuple[int, Any]:
        """The answer of /readyz, now."""
        answer = await self._http.get("/readyz")
        return answer.status_code, answer.json()

    async def says_later(self) -> tuple[int, Any]:
        """The same when a second has passed."""
        self._passed[0] += 1
        return await self.says()


@asynccontextmanager
async def process(path: Path, *, stopped: bool = False, **options: Any) -> AsyncIterator[Probe]:
    """A process of its own, whose clock is that of the machine, and can be moved on by some seconds.

    A `stopped` clock is moved on by the test alone, so that a busy machine makes no second of it.
    """
    passed, start = [0.0], time.time()
    async with AsyncExitStack() as stack:
        chosen = settings.load(base_url=BASE, data_dir=path, developer_mode=True, **options)
        made = await stack.enter_async_context(
            app.create(chosen, clock=lambda: (start if stopped else time.time()) + passed[0])
        )
        http = httpx.AsyncClient(transport=httpx.ASGITransport(app=made.asgi), base_url=BASE)
        yield Probe(await stack.enter_async_context(http), passed)


def without(part: str) -> tuple[int, Any]:
    return 503, {"status": "not ready", "part": part}


async def test_a_full_redis_makes_a_node_say_short_lived_state_until_there_is_room(tmp_path: Path) -> None:
    """D34: at its maxmemory with noeviction it answers every read."""
    with RedisServer() as server:
        async with process(tmp_path, transient_url=server.url) as probe:
            assert await probe.says() == READY
            server.command("CONFIG", "SET", "maxmemory", "1")
            assert await probe.says_later() == without("short-lived state")
            server.command("CONFIG", "SET", "maxmemory", "0")
            assert await probe.says_later() == READY


@pytest.mark.full
async def test_a_postgresql_that_is_read_only_makes_a_node_say_database(tmp_path: Path) -> None:
    """D34: such as a copy, or a server whose disk is full."""
    with PostgresServer() as server:

        def read_only(switch: str) -> None:
            server.sql(f"ALTER SYSTEM SET default_transaction_read_only = {switch}")
            server.sql("SELECT pg_reload_conf()")
            time.sleep(0.2)  # the server tells its other processes

        async with process(tmp_path, database_url=server.dsn(), key_encryption_key=KEY, migrate_on_start=True) as probe:
            assert await probe.says() == READY
            read_only("on")
            assert await probe.says_later() == without("database")
            read_only("off")
            assert await probe.says_later() == READY


@pytest.mark.full
async def test_an_sqlite_that_cannot_be_written_makes_a_node_say_database(tmp_path: Path) -> None:
    """D34: another program holds the lock; reading goes on."""
    async with process(tmp_path) as probe:
        assert await probe.says() == READY
        with closing(sqlite3.connect(tmp_path / "corpid.sqlite", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert await probe.says_later() == without("database")
            other.execute("ROLLBACK")
        assert await probe.says_later() == READY


async def test_probes_write_at_most_once_a_second_and_share_the_answer(tmp_path: Path) -> None:
    """D34: whoever asks a thousand times a second burdens no engine; a failure is shared as well."""
    with RedisServer() as server, closing(redis.Redis(port=server.port)) as engine:

        def writes() -> int:
            return int(engine.info("commandstats").get("cmdstat_set", {}).get("calls", 0))

        async with process(tmp_path, stopped=True, transient_url=server.url) as probe:
            await probe.says()
            before = writes()
            for second in range(1, 4):
                first = await probe.says_later()
                rest = await asyncio.gather(*(probe.says() for _ in range(100)))
                assert {status for status, _ in (first, *rest)} == {200}
                assert writes() == before + second
            engine.config_set("maxmemory", "1")
            assert await probe.says() == READY, "it was asked in this second"
            refused = [await probe.says_later(), *await asyncio.gather(*(probe.says() for _ in range(20)))]
            assert refused == [without("short-lived state")] * 21
            assert writes() <= before + 4


async def test_probes_at_the_same_moment_share_one_write(tmp_path: Path) -> None:
    """D34: also the first ones, and one whose prober has gone away."""
    with RedisServer() as server, closing(redis.Redis(port=server.port)) as engine:
        async with process(tmp_path, transient_url=server.url) as probe:
            engine.config_resetstat()
            gone = asyncio.create_task(probe.says())
            await asyncio.sleep(0)
            gone.cancel()
            answers = await asyncio.gather(*(probe.says() for _ in range(50)))
            assert answers == [READY] * 50
            assert engine.info("commandstats")["cmdstat_set"]["calls"] == 1
