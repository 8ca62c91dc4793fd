"""Where a cluster is, who may use it, and what CorpID says to one that it cannot use."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from corpid.stores.valkey.transient import open_valkey
from tests.adapters.on_redis import PASSWORD, RULES, refusal
from tests.clusters import ClusterNode, RedisCluster, until
from tests.machine import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def cluster(program: str) -> Iterator[RedisCluster]:
    with RedisCluster(program=program, replicas=1) as running:
        yield running


def works(url: str) -> None:
    """Every node is used."""

    async def attempt() -> None:
        store = await open_valkey(url, clock=time.time)
        for number in range(64):
            async with store.batch(0) as batch:
                await batch.put("code", b"%d" % number, b"grant", 60)
                assert await batch.take("code", b"%d" % number) == b"grant"
                assert await batch.count("misses", b"%d" % number, 60) > 0
        assert abs(await store.engine_time() - time.time()) < 1
        await store.close()

    asyncio.run(attempt())


def place(node: ClusterNode) -> str:
    return f"127.0.0.1:{node.port}"


@pytest.mark.full
def test_any_node_leads_to_the_others(cluster: RedisCluster) -> None:
    """Also a replica, which the named node may have become."""
    for node in cluster.nodes:
        works(node.url)


@pytest.mark.full
def test_of_several_addresses_one_has_to_answer(cluster: RedisCluster) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    works(f"redis://{nobody},{place(cluster.primaries[1])}/0")
    assert f"Redis at {nobody} cannot be reached" in refusal(f"redis://{nobody},127.0.0.1:1/0")


@pytest.mark.full
def test_one_user_with_few_permissions_on_every_node(cluster: RedisCluster) -> None:
    login, (first, *_) = f"corpid:{PASSWORD}@", cluster.primaries
    for node in cluster.nodes:
        node.ask("ACL", "SETUSER", "corpid", "on", f">{PASSWORD}", *RULES)
    assert "cluster|slots" in refusal(f"redis://{login}{place(first)}/0")
    for node in cluster.nodes:
        node.ask("ACL", "SETUSER", "corpid", "+cluster|slots")
    works(f"redis://{login}{place(first)}/0")
    last = cluster.primaries[-1]
    last.ask("ACL", "DELUSER", "corpid")
    assert f"{place(last)} refuses the user or password" in refusal(f"redis://{login}{place(first)}/0")


@pytest.mark.full
def test_one_node_that_may_evict_what_was_spent_is_enough_to_refuse(cluster: RedisCluster) -> None:
    """D7, D18: an evicted record of what was spent would let it be spent again."""
    last = cluster.primaries[-1]
    last.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        sentence = refusal(cluster.url)
    finally:
        last.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert place(last) in sentence
    assert "set maxmemory-policy to noeviction" in sentence


@pytest.mark.full
def test_a_cluster_that_is_not_whole_is_explained(program: str) -> None:
    with ClusterNode(program=program) as alone:
        assert "slots that no node serves" in refusal(alone.url)
        alone.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        until(lambda: "cluster_state:ok" in str(alone.ask("CLUSTER", "INFO")))
        works(alone.url)
