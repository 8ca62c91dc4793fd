"""A real cluster of Redis or Valkey for tests: primaries, and replicas of the first ones, on ports and in directories of their own.

`redis_cluster()` gives the address of an empty one, which runs once per test process. A test that moves slots
or stops nodes starts one for itself: `with RedisCluster() as cluster: …`.
"""

from __future__ import annotations

import functools
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, Self

import redis
from redis.crc import key_slot

from corpid.stores.valkey import incarnations
from tests import engines
from tests.engines import RedisServer
from tests.machine import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SLOTS: Final = 16384
_PATIENCE_SECONDS: Final = 60
_OPTIONS: Final = (
    *("--cluster-enabled", "yes", "--cluster-node-timeout", "1500", "--cluster-require-full-coverage", "no"),
    # whoever has old writes only may be promoted too
    *("--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0"),
)


class ClusterNode(RedisServer):
    """One node, which remembers the others when it starts again."""

    def __init__(self, *options: str, program: str = "redis") -> None:
        self.bus: Final = free_port()
        self.tls_port: Final = free_port() if "--tls-cluster" in options else 0
        ports = ("--cluster-port", str(self.bus), "--tls-port", str(self.tls_port))
        super().__init__(*_OPTIONS, *ports, *(options or ("--save", "")), program=program)

    def ask(self, *words: str | bytes | int) -> Any:
        """One command by itself; the answer, with text as text."""
        with redis.Redis(port=self.port, decode_responses=True, socket_timeout=5) as client:
            return client.execute_command(*words)

    @functools.cached_property
    def identity(self) -> str:
        """Its name in the cluster."""
        return str(self.ask("CLUSTER", "MYID"))


class RedisCluster:
    """Three primaries, and `replicas` of the first of them."""

    def __init__(self, *options: str, program: str = "redis", replicas: int = 0) -> None:
        self.primaries: Final = [ClusterNode(*options, program=program) for _ in range(3)]
        self.replicas: Final = [ClusterNode(*options, program=program) for _ in range(replicas)]
        self._running: Final = ExitStack()

    @property
    def nodes(self) -> list[ClusterNode]:
        """Primaries, then replicas, as they were at the start."""
        return [*self.primaries, *self.replicas]

    @property
    def url(self) -> str:
        """The address of one node, which leads to the others."""
        return self.primaries[0].url

    def __enter__(self) -> Self:
        try:
            for node in self.nodes:
                self._running.enter_context(node)
            self._join()
        except BaseException:
            self._running.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def move(self, part: int, source: ClusterNode, target: ClusterNode) -> None:
        """Move a part of the memory to another node, with all that is in it, as redis-cli does."""
        self.begin_move(part, source, target)
        self.carry(part, source, target)
        self.end_move(part, source, target)

    def begin_move(self, part: int, source: ClusterNode, target: ClusterNode) -> None:
        """From here on new entries belong to the target, and old ones to the source."""
        target.ask("CLUSTER", "SETSLOT", slot(part), "IMPORTING", source.identity)
        source.ask("CLUSTER", "SETSLOT", slot(part), "MIGRATING", target.identity)

    def carry(self, part: int, source: ClusterNode, target: ClusterNode) -> None:
        """Take every entry to the target."""
        while keys := source.ask("CLUSTER", "GETKEYSINSLOT", slot(part), 100):
            source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)

    def end_move(self, part: int, source: ClusterNode, target: ClusterNode) -> None:
        """The target owns the part."""
        for node in (target, source, *self.primaries):
            node.ask("CLUSTER", "SETSLOT", slot(part), "NODE", target.identity)

    def owner(self, part: int) -> ClusterNode:
        """The node that holds a part, as the nodes that answer see it."""
        told = next(node for node in self.nodes if node.process is not None).ask("CLUSTER", "SLOTS")
        port = next(row[2][1] for row in told if row[0] <= slot(part) <= row[1])
        return next(node for node in self.nodes if node.port == port)

    def settled(self) -> bool:
        """Whether every running node sees a whole cluster."""
        return all("cluster_state:ok" in str(node.ask("CLUSTER", "INFO")) for node in self.nodes if node.process)

    def _join(self) -> None:
        first = self.primaries[0]
        for number, node in enumerate(self.nodes):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            if node is not first:
                node.ask("CLUSTER", "MEET", "127.0.0.1", first.tls_port or first.port, first.bus)
        edges = [round(_SLOTS * number / len(self.primaries)) for number in range(len(self.primaries) + 1)]
        for number, node in enumerate(self.primaries):
            node.ask("CLUSTER", "ADDSLOTSRANGE", edges[number], edges[number + 1] - 1)
        until(lambda: all(len(node.ask("CLUSTER", "SLOTS")) == len(self.primaries) for node in self.nodes))
        for replica, primary in zip(self.replicas, self.primaries, strict=False):
            until(lambda primary=primary, replica=replica: primary.identity in str(replica.ask("CLUSTER", "NODES")))  # type: ignore[misc]
            replica.ask("CLUSTER", "REPLICATE", primary.identity)
            until(lambda replica=replica: "master_link_status:up" in raw_information(replica))  # type: ignore[misc]
        until(self.settled)


def raw_information(node: ClusterNode) -> str:
    """What a node says of itself."""
    with redis.Redis(port=node.port, socket_timeout=5) as client:
        client.response_callbacks.clear()
        return bytes(client.execute_command("INFO")).decode()


def slot(part: int) -> int:
    """The slot in which a part of the memory lies."""
    return int(key_slot(incarnations.name_marker(part)))


def until(true: Callable[[], bool]) -> None:
    """Wait until the cluster has come to know something."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < deadline, "the cluster did not get there"
        time.sleep(0.02)


@functools.cache
def redis_cluster_servers(program: str) -> RedisCluster:
    """The cluster of this test process; to be left running."""
    return engines.left_running(RedisCluster(program=program))


@contextmanager
def redis_cluster(program: str = "redis") -> Iterator[str]:
    """The address of an empty cluster. One of each program at a time."""
    cluster = redis_cluster_servers(program)
    for node in cluster.primaries:
        assert node.command("FLUSHALL") == "+OK"
    yield cluster.url
