"""Redis that restarts, forgets, remembers too much, hangs or is set up wrongly (DESIGN "What each engine promises")."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import pytest

from corpid.adapters.valkey import ValkeyTransientStore, open_valkey
from corpid.ports import StoreUnavailable
from corpid.protocol.errors import InvalidGrant
from tests.engines import RedisServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    T = TypeVar("T")

KEY, OTHER = b"k" * 32, b"o" * 32
NOW = 0.0
"""decides nothing: the engine's clock does"""
AS_DEBIAN_SHIPS_IT = ("--save", "3600 1 300 100 60 10000", "--appendonly", "no")
PATIENCE_SECONDS = 30
TWO_SECONDS_AND_SOME = 2.2

ANOTHER_PROCESS = """
import asyncio, sys, time
from corpid.adapters.valkey import open_valkey
async def main():
    store = await open_valkey(sys.argv[1], clock=time.time)
    print(repr(store.forgotten_at))
    await store.close()
asyncio.run(main())
"""


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


@pytest.fixture
def debian() -> Iterator[RedisServer]:
    with RedisServer(*AS_DEBIAN_SHIPS_IT) as running:
        yield running


@asynccontextmanager
async def opened(url: str, *, deployed_at: float = 0.0) -> AsyncIterator[ValkeyTransientStore]:
    store = await open_valkey(url, clock=time.time, deployed_at=deployed_at)
    try:
        yield store
    finally:
        await store.close()


async def put(store: ValkeyTransientStore, *, key: bytes = KEY) -> None:
    async with store.unit(NOW) as unit:
        await unit.put("code", key, b"grant", 60)


async def take(store: ValkeyTransientStore) -> bytes | None:
    async with store.unit(NOW) as unit:
        return await unit.take("code", KEY)


async def add(store: ValkeyTransientStore) -> bool:
    async with store.unit(NOW) as unit:
        return await unit.add("proof", KEY, 120)


async def recovered(attempt: Callable[[], Awaitable[T]], *, pause: float = 0.02) -> T:
    """What it answers as soon as the store is there again."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                return await attempt()
            except StoreUnavailable:
                await asyncio.sleep(pause)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if true():
                return
            await asyncio.sleep(0.02)


def seen_by_another_process(url: str) -> float:
    command = [sys.executable, "-c", ANOTHER_PROCESS, url]
    return float(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)


def refusal(url: str) -> str:
    """What `open_valkey` says."""

    async def attempt() -> str:
        with pytest.raises(StoreUnavailable) as refused:
            await open_valkey(url, clock=time.time)
        return str(refused.value)

    return asyncio.run(attempt())


def test_a_code_spent_after_the_snapshot_is_not_spendable_after_a_crash(debian: RedisServer) -> None:
    """D18: the engine brings it back, under the name of a run that is over."""

    async def scenario() -> None:
        async with opened(debian.url) as store:
            await put(store)
            assert debian.command("SAVE") == "+OK"
            assert await take(store) == b"grant"
            debian.crash()
            debian.start()
            assert int(debian.command("DBSIZE")[1:]) >= 2, "the snapshot holds the code"
            assert await recovered(lambda: take(store)) is None
        async with opened(debian.url) as store:
            assert await take(store) is None

    asyncio.run(scenario())


@pytest.mark.parametrize("options", [(), AS_DEBIAN_SHIPS_IT], ids=["no persistence", "snapshot"])
def test_whatever_was_issued_before_a_crash_is_refused_by_all_after_it(options: tuple[str, ...]) -> None:
    """D7, D8: a replayed proof would be the first again, so its time speaks against it."""

    async def scenario(server: RedisServer) -> None:
        async with opened(server.url) as store:
            assert await add(store)
            server.command("SAVE")
            async with store.unit(NOW) as unit:
                assert await unit.add("proof", OTHER, 120)
            crashed_at = time.time()
            server.crash()
            server.start()
            assert await recovered(lambda: add(store)), "it has forgotten what was spent"
            assert store.runs.remembers_since > crashed_at
            here = store.forgotten_at
        assert seen_by_another_process(server.url) == here

    with RedisServer(*options) as running:
        asyncio.run(scenario(running))


def test_nobody_gets_an_answer_of_a_new_run_before_it_is_known_to_be_new(server: RedisServer) -> None:
    """Who looked at `forgotten_at` before the crash never adds to the memory after it."""

    async def scenario() -> None:
        async with opened(server.url) as store:
            for _ in range(5):
                crashed_at = time.time()
                server.crash()
                server.start()
                assert await recovered(lambda: look(store), pause=0) > crashed_at

    async def look(store: ValkeyTransientStore) -> float:
        looked_at = store.runs.remembers_since
        await add(store)
        return looked_at

    asyncio.run(scenario())


def test_a_unit_that_began_before_a_crash_does_not_go_on_after_it(server: RedisServer) -> None:
    async def scenario() -> None:
        async with opened(server.url) as store:
            with pytest.raises(StoreUnavailable):
                await through_a_crash(store)
            assert await recovered(lambda: store.get("code", KEY, now=NOW)) is None

    async def through_a_crash(store: ValkeyTransientStore) -> None:
        async with store.unit(NOW) as unit:
            assert await unit.add("proof", KEY, 120)
            server.crash()
            server.start()
            await recovered(store.engine_time)
            await unit.put("code", KEY, b"grant", 60)

    asyncio.run(scenario())


def test_a_second_process_agrees_since_when_the_engine_remembers(server: RedisServer) -> None:
    async def scenario() -> None:
        async with opened(server.url) as store:
            assert seen_by_another_process(server.url) == store.forgotten_at

    asyncio.run(scenario())


def test_an_emptied_engine_is_noticed_within_seconds(server: RedisServer) -> None:
    async def scenario() -> None:
        async with opened(server.url) as store:
            emptied_at = time.time()
            server.command("FLUSHALL")
            await until(lambda: store.runs.remembers_since > emptied_at)
            assert await take(store) is None

    asyncio.run(scenario())


def test_an_engine_older_than_the_deployment_has_forgotten_nothing_of_it(server: RedisServer) -> None:
    """So the first start of all does not begin with refusals; a later restart of the engine does."""

    async def scenario() -> None:
        deployed_at = time.time() + 1
        async with opened(server.url, deployed_at=deployed_at) as store:
            assert store.forgotten_at == 0.0
            await until(lambda: time.time() > deployed_at)
            server.crash()
            server.start()
            await recovered(store.engine_time)
            assert store.forgotten_at > deployed_at

    asyncio.run(scenario())


def test_a_lost_connection_to_the_same_run_loses_nothing(server: RedisServer) -> None:
    async def scenario() -> None:
        async with opened(server.url) as store:
            await put(store)
            assert await add(store)
            before = store.forgotten_at
            for _ in range(5):
                server.command("CLIENT", "KILL", "TYPE", "normal")
                assert not await recovered(lambda: add(store))
            assert store.forgotten_at == before
            assert await take(store) == b"grant"

    asyncio.run(scenario())


def test_an_engine_that_hangs_is_unavailable_until_it_answers_again(server: RedisServer) -> None:
    async def scenario() -> None:
        async with opened(server.url) as store:
            await put(store)
            server.pause()
            with pytest.raises(StoreUnavailable, match=r"did not answer|no answer"):
                await take(store)
            with pytest.raises(StoreUnavailable):
                await store.engine_time()
            server.resume()
            assert await recovered(lambda: add(store))

    asyncio.run(scenario())


def test_an_engine_that_is_down_is_unavailable_at_once_and_comes_back(server: RedisServer) -> None:
    async def scenario() -> None:
        async with opened(server.url) as store:
            server.stop()
            for _ in range(3):
                with pytest.raises(StoreUnavailable, match=f"Redis at 127.0.0.1:{server.port}"):
                    await add(store)
            server.start()
            assert await recovered(lambda: add(store))

    asyncio.run(scenario())


def test_a_request_that_was_given_up_leaves_no_answer_for_another(server: RedisServer) -> None:
    async def scenario() -> None:
        async with opened(server.url) as store:
            async with store.unit(NOW) as unit:
                for number in range(100):
                    await unit.put("code", number.to_bytes(32, "big"), str(number).encode(), 60)
            looks = [asyncio.create_task(look(store, number)) for number in range(100)]
            await asyncio.sleep(0)
            for given_up in looks[::2]:
                given_up.cancel()
            assert await asyncio.gather(*looks[1::2]) == [str(number).encode() for number in range(1, 100, 2)]
            await asyncio.gather(*looks, return_exceptions=True)

    async def look(store: ValkeyTransientStore, number: int) -> bytes | None:
        return await store.get("code", number.to_bytes(32, "big"), now=NOW)

    asyncio.run(scenario())


def test_after_a_fault_what_was_spent_stays_spent_and_nothing_more_is_written(server: RedisServer) -> None:
    """There are no transactions: a flow that broke leaves less than it promised, never more."""

    async def scenario() -> None:
        async with opened(server.url) as store:
            await put(store)
            with pytest.raises(RuntimeError, match="a fault"):
                await fail(store, RuntimeError("a fault"))
            assert await take(store) is None
            assert await store.get("code", OTHER, now=NOW) is None
            with pytest.raises(InvalidGrant):
                await fail(store, InvalidGrant("Refused."))
            assert await store.get("code", OTHER, now=NOW) == b"grant"

    async def fail(store: ValkeyTransientStore, error: Exception) -> None:
        async with store.unit(NOW) as unit:
            await unit.take("code", KEY)
            await unit.put("code", OTHER, b"grant", 60)
            raise error

    asyncio.run(scenario())


def test_a_full_engine_refuses_rather_than_forgets(server: RedisServer) -> None:
    async def scenario() -> None:
        async with opened(server.url) as store:
            server.command("CONFIG", "SET", "maxmemory", "1")
            with pytest.raises(StoreUnavailable, match="maxmemory"):
                await put(store)
            server.command("CONFIG", "SET", "maxmemory", "0")
            await put(store)
            assert await take(store) == b"grant"

    asyncio.run(scenario())


def test_a_replica_that_is_promoted_is_another_run(tmp_path: Path) -> None:
    """D18: it may not know yet what was spent; the same holds for the way back."""
    socket = tmp_path / "engine"

    async def scenario(first: RedisServer, second: RedisServer) -> None:
        socket.symlink_to(first.directory / "socket")
        async with opened(f"unix://{socket}") as store:
            await put(store)
            # long enough that the moment of the promotion cannot be taken for the engine's start
            await asyncio.sleep(TWO_SECONDS_AND_SOME)
            for old, new in ((first, second), (second, first)):
                assert old.command("WAIT", "1", "5000") == ":1"
                promoted_at = time.time()
                new.command("REPLICAOF", "NO", "ONE")
                point_to(new)
                old.command("REPLICAOF", "127.0.0.1", str(new.port))
                old.command("CLIENT", "KILL", "TYPE", "normal")
                assert await recovered(lambda: add(store))
                assert store.runs.remembers_since > promoted_at
                assert await store.get("code", KEY, now=NOW) is None or new is first
        assert "is a replica" in await asyncio.to_thread(refusal, second.url)

    def point_to(server: RedisServer) -> None:
        socket.unlink()
        socket.symlink_to(server.directory / "socket")

    options = ("--save", "", "--repl-diskless-sync-delay", "0", "--unixsocket", "socket")
    with RedisServer(*options) as first, RedisServer(*options, "--replicaof", f"127.0.0.1 {first.port}") as second:
        asyncio.run(scenario(first, second))
