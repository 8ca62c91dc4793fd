"""Redis or Valkey that restarts, forgets, or remembers too much (docs/reliability.md)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from corpid.rules.failures import StoreUnavailable
from corpid.stores.valkey.transient import ValkeyTransientStore, open_valkey
from tests.adapters.on_redis import KEY, NOW, OTHER, add, opened, put, recovered, refusal, take, until
from tests.engines import RedisServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


pytestmark = pytest.mark.full

AS_DEBIAN_SHIPS_IT = ("--save", "3600 1 300 100 60 10000", "--appendonly", "no")

ANOTHER_PROCESS = """
import asyncio, sys, time
from corpid.stores.valkey.transient import open_valkey
async def main():
    store = await open_valkey(sys.argv[1], clock=time.time)
    print(repr(store.loss.reject_issued_before))
    await store.close()
asyncio.run(main())
"""


@pytest.fixture
def server(program: str) -> Iterator[RedisServer]:
    with RedisServer(program=program) as running:
        yield running


@pytest.fixture
def debian(program: str) -> Iterator[RedisServer]:
    with RedisServer(*AS_DEBIAN_SHIPS_IT, program=program) as running:
        yield running


def seen_by_another_process(url: str) -> float:
    command = [sys.executable, "-c", ANOTHER_PROCESS, url]
    return float(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)


async def test_a_code_spent_after_the_snapshot_is_not_spendable_after_a_crash(debian: RedisServer) -> None:
    """D18: the engine brings it back, under the name of a run that is over."""
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


@pytest.mark.parametrize("options", [(), AS_DEBIAN_SHIPS_IT], ids=["no persistence", "snapshot"])
async def test_whatever_was_issued_before_a_crash_is_refused_by_all_after_it(
    options: tuple[str, ...], program: str
) -> None:
    """D7, D8: a replayed proof would be the first again, so its time speaks against it."""
    with RedisServer(*options, program=program) as running:
        server = running
        async with opened(server.url) as store:
            assert await add(store)
            server.command("SAVE")
            async with store.batch(NOW) as batch:
                assert await batch.add("proof", OTHER, 120)
            crashed_at = time.time()
            server.crash()
            server.start()
            assert await recovered(lambda: add(store)), "it has forgotten what was spent"
            assert store.keyspace.remembers_since > crashed_at
            here = store.loss.reject_issued_before
        assert seen_by_another_process(server.url) == here


async def test_nobody_gets_an_answer_of_a_new_run_before_it_is_known_to_be_new(server: RedisServer) -> None:
    """Who looked at `reject_issued_before` before the crash never adds to the memory after it."""

    async def look(store: ValkeyTransientStore) -> float:
        looked_at = store.keyspace.remembers_since
        await add(store)
        return looked_at

    async with opened(server.url) as store:
        for _ in range(5):
            crashed_at = time.time()
            server.crash()
            server.start()
            assert await recovered(lambda: look(store), pause=0) > crashed_at


async def test_a_unit_that_began_before_a_crash_does_not_go_on_after_it(server: RedisServer) -> None:
    async def through_a_crash(store: ValkeyTransientStore) -> None:
        async with store.batch(NOW) as batch:
            assert await batch.add("proof", KEY, 120)
            server.crash()
            server.start()
            await recovered(store.engine_time)
            await batch.put("code", KEY, b"grant", 60)

    async with opened(server.url) as store:
        with pytest.raises(StoreUnavailable):
            await through_a_crash(store)
        assert await recovered(lambda: store.get("code", KEY, now=NOW)) is None


async def test_a_second_process_agrees_since_when_the_engine_remembers(server: RedisServer) -> None:
    async with opened(server.url) as store:
        assert seen_by_another_process(server.url) == store.loss.reject_issued_before


async def test_the_time_of_the_engine_is_known_without_asking_and_never_too_late(server: RedisServer) -> None:
    """docs/decisions/0026: whatever this process's clock says; skews are measured against it."""
    store = await open_valkey(server.url, clock=lambda: time.time() + 8)
    try:
        for _ in range(15):
            assert store.engine_time_at_least() <= await store.engine_time() < store.engine_time_at_least() + 1
            await asyncio.sleep(0.1)
    finally:
        await store.close()


async def test_a_process_that_is_ahead_does_not_forget_it_while_the_engine_is_away(server: RedisServer) -> None:
    """D67: else it gave nonces before every process has noticed a loss."""
    store = await open_valkey(server.url, clock=lambda: time.time() + 9)
    try:
        before = store.loss.complete_from
        server.stop()
        await until(lambda: not store.keyspace._live)
        assert store.loss.complete_from == pytest.approx(before, abs=0.5)
    finally:
        await store.close()


async def test_an_engine_whose_clock_is_behind_its_predecessors_remembers_since_that_ones_time(
    server: RedisServer,
) -> None:
    """docs/decisions/0026: what was spent is dated by the clock of the one before."""
    async with opened(server.url) as store:
        keyspace, [name] = store.keyspace, store.keyspace._live
        shown = await store.engine_time() + 8
        keyspace._note_time(name, shown)
        server.command("FLUSHALL")
        await until(lambda: keyspace.remembers_since >= shown)
        assert store.loss.spent_until == keyspace.remembers_since


async def test_an_engine_whose_clock_is_far_behind_its_predecessors_proves_nothing_by_it(server: RedisServer) -> None:
    """docs/decisions/0026: what was spent is dated later than the moment that its incarnation names; for every process."""
    async with opened(server.url) as store, opened(server.url) as other:
        keyspace, [name] = store.keyspace, store.keyspace._live
        store_identity, before = store.store_identity, keyspace.incarnation_name
        await other.keyspace.close()  # the one that has seen it begins the incarnation
        keyspace._note_time(name, await store.engine_time() + 60)
        server.command("FLUSHALL")
        await until(lambda: keyspace.incarnation_name > before)
        assert store.loss.spent_until is None
        assert store.store_identity == store_identity
        async with opened(server.url) as third:
            await until(lambda: third.keyspace.incarnation_name == keyspace.incarnation_name)
            assert third.loss.spent_until is None
            assert third.loss.reject_issued_before > time.time() + 30


async def test_an_emptied_engine_answers_nothing_before_it_is_noticed(server: RedisServer) -> None:
    """D7, D8: each answer comes with a look at the marker."""
    async with opened(server.url) as store:
        await put(store)
        before = store.keyspace.incarnation_name
        server.command("FLUSHALL")
        assert await recovered(lambda: take(store)) is None
        assert store.keyspace.incarnation_name > before


async def test_a_deployment_that_began_with_this_memory_refuses_nothing_until_it_is_lost(server: RedisServer) -> None:
    """Also where the engine is younger than the deployment; a later restart of the engine counts."""
    async with opened(server.url) as store:
        store.reject_before(0.0, store_identity=store.store_identity)
        assert store.loss.reject_issued_before == 0.0
        crashed_at = time.time()
        server.crash()
        server.start()
        await recovered(store.engine_time)
        assert store.loss.reject_issued_before > crashed_at


async def test_a_replica_that_is_promoted_is_another_run(tmp_path: Path, program: str) -> None:
    """D18: it may not know yet what was spent; the same holds for the way back."""
    socket = tmp_path / "engine"

    def point_to(server: RedisServer) -> None:
        socket.unlink()
        socket.symlink_to(server.directory / "socket")

    options = ("--save", "", "--repl-diskless-sync-delay", "0", "--unixsocket", "socket")
    with (
        RedisServer(*options, program=program) as first,
        RedisServer(*options, "--replicaof", f"127.0.0.1 {first.port}", program=program) as second,
    ):
        socket.symlink_to(first.directory / "socket")
        async with opened(f"unix://{socket}") as store:
            await put(store)
            for old, new in ((first, second), (second, first)):
                assert old.command("WAIT", "1", "5000") == ":1"
                promoted_at = time.time()
                new.command("REPLICAOF", "NO", "ONE")
                point_to(new)
                old.command("REPLICAOF", "127.0.0.1", str(new.port))
                old.command("CLIENT", "KILL", "TYPE", "normal")
                assert await recovered(lambda: add(store))
                assert store.keyspace.remembers_since > promoted_at
                assert await store.get("code", KEY, now=NOW) is None or new is first
        assert "is a replica" in await asyncio.to_thread(refusal, second.url)
