"""A cluster of Redis or Valkey whose parts move, fail over, forget and fall silent (docs/reliability.md)."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import time
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from zlib import crc32

import pytest

from corpid.rules.failures import StoreUnavailable
from tests import clusters
from tests.adapters.on_redis import NOW, add, opened, put, recovered, take, until
from tests.clusters import ClusterNode, RedisCluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from corpid.stores.valkey.transient import ValkeyTransientStore

pytestmark = pytest.mark.full

PARTS = 64


@pytest.fixture(scope="module")
def nodes(program: str) -> Iterator[RedisCluster]:
    with RedisCluster(program=program) as running:
        yield running


@pytest.fixture
def cluster(nodes: RedisCluster) -> RedisCluster:
    """An empty cluster, whose parts may lie anywhere."""
    for node in nodes.primaries:
        node.command("FLUSHALL")
    return nodes


@asynccontextmanager
async def several(cluster: RedisCluster) -> AsyncIterator[tuple[ValkeyTransientStore, ValkeyTransientStore]]:
    """As two processes, each of which knows only what the engine told it."""
    async with opened(cluster.url) as one, opened(cluster.url) as other:
        yield one, other


def keys_in(part: int) -> Iterator[bytes]:
    """All keys whose entries lie in a part."""
    keys = (b"%d" % candidate for candidate in itertools.count())
    return (key for key in keys if crc32(key) % PARTS == part)


def key_in(part: int, number: int = 0) -> bytes:
    """One of them."""
    return next(itertools.islice(keys_in(part), number, None))


def part_of(cluster: RedisCluster, node: ClusterNode) -> int:
    return next(part for part in range(PARTS) if cluster.owner(part) is node)


class Proofs:
    """Proofs made all the time, and presented again and again."""

    def __init__(self) -> None:
        self.made: list[tuple[bytes, float]] = []
        """each, and when"""
        self.accepted: list[bytes] = []

    async def make(self, part: int) -> None:
        for name in keys_in(part):
            self.made.append((name, time.time()))
            await asyncio.sleep(0.02)

    async def present(self, store: ValkeyTransientStore) -> None:
        """Those of the last moments all the time, and the earlier ones in turn."""
        for number in itertools.count():
            earlier = self.made[number % (len(self.made) or 1) :][:1]
            for proof in (*self.made[-10:], *earlier):
                with contextlib.suppress(StoreUnavailable):
                    await self.once(store, *proof)
            await asyncio.sleep(0.005)

    async def once(self, store: ValkeyTransientStore, name: bytes, made_at: float) -> None:
        """Present one, and accept it if it was certainly not spent before."""
        async with store.batch(NOW) as batch:
            if made_at >= store.keyspace.remembers_since and await batch.add("proof", name, 120):
                self.accepted.append(name)

    async def until_accepted(self) -> None:
        """Wait until some are accepted that are made from now on."""
        made = len(self.made)
        await until(lambda: len({name for name, _ in self.made[made:]}.intersection(self.accepted)) >= 10)


async def test_a_part_that_moves_under_load_gives_one_winner_and_no_replay(cluster: RedisCluster) -> None:
    """D7, D8: two processes, each proof presented again and again at both, while its slot goes to and fro."""
    proofs = Proofs()

    home, away, _ = cluster.primaries
    part = await asyncio.to_thread(part_of, cluster, home)
    async with several(cluster) as stores, asyncio.TaskGroup() as group:
        load = [group.create_task(proofs.present(store)) for store in stores for _ in range(4)]
        load.append(group.create_task(proofs.make(part)))
        await proofs.until_accepted()
        for source, target in ((home, away), (away, home)) * 2:
            await asyncio.to_thread(cluster.move, part, source, target)
            await proofs.until_accepted()
        for task in load:
            task.cancel()
        await asyncio.wait(load)
        for store in stores:
            for proof in proofs.made:
                await recovered(functools.partial(proofs.once, store, *proof))
    assert max(Counter(proofs.accepted).values()) == 1


async def test_who_missed_that_a_part_was_away_cannot_be_used_for_a_replay(cluster: RedisCluster) -> None:
    """D7, D18: what another process spent in between, nobody spends again in the memory from before."""
    home, away, _ = cluster.primaries
    part = await asyncio.to_thread(part_of, cluster, home)
    code, proof = key_in(part), key_in(part, 1)
    async with several(cluster) as (one, other):
        await put(one, code)
        async with one.batch(NOW) as late:
            await asyncio.to_thread(cluster.move, part, home, away)
            moved_at = time.time()
            assert await recovered(lambda: add(other, proof))
            assert await take(other, code) is None
            await asyncio.to_thread(cluster.move, part, away, home)
            with pytest.raises(StoreUnavailable):
                await late.add("proof", proof, 120)
            with pytest.raises(StoreUnavailable):
                await late.take("code", code)
        await recovered(lambda: add(one, proof))
        assert one.keyspace.remembers_since > moved_at, "so that its time speaks against the proof"


async def test_what_one_node_forgot_is_forgotten_by_all_at_once(cluster: RedisCluster) -> None:
    """A flow relies on entries in several parts: none of them may outlive another."""
    emptied, intact, _ = cluster.primaries
    parts = [await asyncio.to_thread(part_of, cluster, node) for node in (emptied, intact)]
    async with several(cluster) as (one, other):
        await put(one, key_in(parts[1]))
        async with one.batch(NOW) as late:
            emptied.command("FLUSHALL")
            emptied_at = time.time()
            with pytest.raises(StoreUnavailable):
                await add(other, key_in(parts[0]))
            assert await recovered(lambda: add(other, key_in(parts[0])))
            await until(lambda: not isinstance(other.keyspace._serving[parts[1]], StoreUnavailable))
            with pytest.raises(StoreUnavailable):
                await late.take("code", key_in(parts[1]))
        assert await recovered(lambda: take(one, key_in(parts[1]))) is None
        await until(lambda: one.keyspace.remembers_since > emptied_at)
        assert one.loss.reject_issued_before == other.loss.reject_issued_before


async def test_while_a_part_is_on_its_way_its_users_are_told_to_retry(cluster: RedisCluster) -> None:
    """Nothing is decided by half of a memory; the other parts go on."""
    home, away, third = cluster.primaries
    part = await asyncio.to_thread(part_of, cluster, home)
    elsewhere = await asyncio.to_thread(part_of, cluster, third)
    async with opened(cluster.url) as store:
        await asyncio.to_thread(cluster.begin_move, part, home, away)
        with pytest.raises(StoreUnavailable):
            await add(store, key_in(part))
        assert await add(store, key_in(elsewhere))
        await asyncio.to_thread(cluster.carry, part, home, away)
        with pytest.raises(StoreUnavailable):
            await add(store, key_in(part))
        await asyncio.to_thread(cluster.end_move, part, home, away)
        assert await recovered(lambda: add(store, key_in(part)))
        assert not await add(store, key_in(part))


async def test_a_replica_that_missed_what_was_spent_makes_nothing_spendable_again(program: str) -> None:
    """D7, D18: a failover loses the last writes; what they were about is not found, or too old."""
    with RedisCluster(program=program, replicas=1) as cluster:
        primary, replica = cluster.primaries[0], cluster.replicas[0]
        part = await asyncio.to_thread(part_of, cluster, primary)
        code, proof = key_in(part), key_in(part, 1)
        async with opened(cluster.url) as store:
            await put(store, code)
            assert primary.ask("WAIT", 1, 5000) == 1
            primary.ask("ACL", "SETUSER", "default", "-psync", "-sync")
            primary.ask("CLIENT", "KILL", "TYPE", "replica")
            assert await take(store, code) == b"grant"
            assert await add(store, proof)
            primary.crash()
            crashed_at = time.time()
            await asyncio.to_thread(clusters.until, lambda: cluster.owner(part) is replica and cluster.settled())
            assert any("code" in name for name in replica.ask("KEYS", "*")), "the replica brings the code back"
            assert await recovered(lambda: take(store, code)) is None
            await recovered(lambda: add(store, proof))
            assert store.loss.reject_issued_before > crashed_at, "so that its time speaks against the proof"
            primary.start()
            assert await recovered(store.engine_time)


@pytest.mark.parametrize("how", ["crash", "pause"])
async def test_while_a_node_is_away_only_what_lives_there_is(cluster: RedisCluster, how: str) -> None:
    """503 for its parts; not ready as a whole; afterwards everything recovers by itself."""
    away, _, third = cluster.primaries
    part = await asyncio.to_thread(part_of, cluster, away)
    elsewhere = await asyncio.to_thread(part_of, cluster, third)
    async with opened(cluster.url) as store:
        assert await add(store, key_in(part))
        getattr(away, how)()
        for number in range(1, 6):
            with pytest.raises(StoreUnavailable):
                await add(store, key_in(part, number))
            assert await add(store, key_in(elsewhere, number))
        with pytest.raises(StoreUnavailable, match=str(away.port)):
            await store.engine_time()
        (away.start if how == "crash" else away.resume)()
        assert await recovered(store.engine_time)
        assert await recovered(lambda: add(store, key_in(part))) == (how == "crash")
        assert not await add(store, key_in(part))


async def test_where_the_cluster_has_to_be_whole_everything_waits_for_a_node(program: str) -> None:
    """As Redis ships it."""
    with RedisCluster("--save", "", "--cluster-require-full-coverage", "yes", program=program) as cluster:
        away, _, third = cluster.primaries
        elsewhere = await asyncio.to_thread(part_of, cluster, third)
        async with opened(cluster.url) as store:
            away.crash()
            await asyncio.to_thread(clusters.until, lambda: "cluster_state:fail" in str(third.ask("CLUSTER", "INFO")))
            with pytest.raises(StoreUnavailable, match="cluster is down"):
                await add(store, key_in(elsewhere))
            with pytest.raises(StoreUnavailable):
                await store.engine_time()
            away.start()
            assert await recovered(store.engine_time)
            assert await recovered(lambda: add(store, key_in(elsewhere)))


async def test_a_node_that_comes_back_with_a_snapshot_brings_nothing_back(program: str) -> None:
    """D18: as with a node alone."""
    with RedisCluster("--save", "3600 1", program=program) as cluster:
        node = cluster.primaries[1]
        part = await asyncio.to_thread(part_of, cluster, node)
        async with opened(cluster.url) as store:
            await put(store, key_in(part))
            assert node.command("SAVE") == "+OK"
            assert await take(store, key_in(part)) == b"grant"
            node.crash()
            crashed_at = time.time()
            node.start()
            assert any("code" in name for name in node.ask("KEYS", "*"))
            assert await recovered(lambda: take(store, key_in(part))) is None
            assert store.loss.reject_issued_before > crashed_at


async def test_a_cluster_of_which_one_node_is_full_is_not_ready(cluster: RedisCluster) -> None:
    """D49: at its maxmemory a node can still be read."""
    async with opened(cluster.url) as store:
        await recovered(lambda: store.ready(now=NOW))
        for node in cluster.primaries:
            node.command("CONFIG", "SET", "maxmemory", "1")
            with pytest.raises(StoreUnavailable, match="maxmemory"):
                await store.ready(now=NOW)
            node.command("CONFIG", "SET", "maxmemory", "0")
            await store.ready(now=NOW)
