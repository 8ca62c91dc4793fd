"""What Prometheus may ask, on an address of its own.

Labels are names that this program gives: the route, the class of the status, the code of the error. None holds
a client, a person or an entity, so their number is bounded and a scrape tells of nobody.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from corpid.jose.keys import KeySetError, parse_client_key_set
from corpid.ports import StoreUnavailable
from corpid.web.middleware import NO_ENDPOINT
from corpid.web.server import Server

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from starlette.types import Receive, Scope, Send

    from corpid.flows.own_keys import OwnKeys

PATH: Final = "/metrics"
DIRECTORY_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
"""names the folder through which several processes answer as one; set before this module is imported"""
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_LOOK_SECONDS: Final = 5.0
_REASONS: Final = 64
"""reasons that are told apart; what a mistake of ours adds beyond them counts as one"""


def _nothing() -> int:
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What is looked at when somebody asks; each function costs next to nothing."""

    clock: Callable[[], float]
    own_keys: OwnKeys
    hashing: Callable[[], int] = _nothing
    """password checks that run or wait"""
    pool: Callable[[], int] = _nothing
    """connections of the database's pool that are in use"""


class Metrics:
    """Every metric of one process. `shared` is the folder of DIRECTORY_VARIABLE where several answer as one."""

    def __init__(self, shared: str | None = None) -> None:
        self.watched: Watched | None = None
        self.shared: Final = shared
        self.registry: Final = CollectorRegistry()
        self._children: dict[tuple[str, int, str], tuple[Counter, Histogram]] = {}
        self._reasons: set[str] = set()
        self._count(self.registry)
        self._gauge(self.registry)

    def _count(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "corpid_requests", "Answered requests.", ("endpoint", "outcome", "reason"), registry=registry
        )
        self._latency = Histogram(
            "corpid_request_seconds", "Time to answer.", ("endpoint",), buckets=_SECONDS, registry=registry
        )
        self._fetches = Counter(
            "corpid_client_key_fetches", "Key sets fetched from relying parties.", ("outcome",), registry=registry
        )
        for outcome in ("fetched", "unusable", "failed"):
            self._fetches.labels(outcome)

    def _gauge(self, registry: CollectorRegistry) -> None:
        self._hashing = Gauge(
            "corpid_hashing_pending",
            "Password checks that run or wait.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._pool = Gauge(
            "corpid_database_connections_in_use",
            "Connections of the pool in use; 0 where the engine has no pool.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._keys = Gauge(
            "corpid_signing_key_start_timestamp_seconds",
            "When the active signing key began to sign, and when the next one will; 0: there is no next one.",
            ("key",),
            registry=registry,
            multiprocess_mode="mostrecent",
        )

    def request(self, endpoint: str, status: int, reason: str, seconds: float) -> None:
        """Count an answered request: its route, status, the code of its error (or nothing), and how long it took."""
        found = self._children.get((endpoint, status, reason))
        counter, histogram = found or self._child(endpoint, status, reason)
        counter.inc()
        histogram.observe(seconds)

    def _child(self, endpoint: str, status: int, reason: str) -> tuple[Counter, Histogram]:
        if len(self._reasons) < _REASONS:
            self._reasons.add(reason)
        told = reason if reason in self._reasons else NO_ENDPOINT
        child = (self._requests.labels(endpoint, f"{status // 100}xx", told), self._latency.labels(endpoint))
        if told == reason:
            self._children[endpoint, status, reason] = child
        return child

    def counting(self, fetch: Callable[[str], Awaitable[bytes]]) -> Callable[[str], Awaitable[bytes]]:
        """A fetch of relying parties' key sets that is counted: fetched, unusable (no key set), or failed (D27)."""

        async def counted(url: str) -> bytes:
            outcome = "failed"
            try:
                octets = await fetch(url)
                outcome = _judged(octets)
            finally:
                self._fetches.labels(outcome).inc()
            return octets

        return counted

    async def look(self) -> None:
        """Bring what is watched up to date; what cannot be looked at stays as it was."""
        if self.watched is None:
            return
        self._hashing.set(self.watched.hashing())
        self._pool.set(self.watched.pool())
        now = self.watched.clock()
        with suppress(StoreUnavailable, ValueError):
            ring = await self.watched.own_keys.ring(now)
            ahead = [key.active_from for key in ring.by_kid.values() if key.active_from > now]
            self._keys.labels("active").set(ring.active.active_from)
            self._keys.labels("next").set(min(ahead, default=0))

    async def text(self) -> bytes:
        """Everything, in Prometheus's text format; of all processes where several share a folder."""
        await self.look()
        registry = self.registry
        if self.shared is not None:
            registry = CollectorRegistry()
            MultiProcessCollector(registry, self.shared)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """The application of the address of its own: GET /metrics, and nothing else."""
        if scope["type"] != "http":
            raise NotImplementedError
        found = scope["path"] == PATH and scope["method"] in {"GET", "HEAD"}
        body = await self.text() if found else b"GET /metrics\n"
        kind = CONTENT_TYPE_LATEST if found else "text/plain; charset=utf-8"
        headers = [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200 if found else 404, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


@asynccontextmanager
async def served(metrics: Metrics, sockets: Iterable[socket.socket]) -> AsyncIterator[None]:
    """Answer on these bound sockets until the context ends. They are never those of the provider."""
    server = Server(metrics, drain_seconds=0)
    await server.start(sockets)
    looking = asyncio.create_task(_keep_looking(metrics))
    try:
        yield
    finally:
        looking.cancel()
        server.force()
        await server.stop()


def worker_ended(process: int) -> None:
    """Where several processes answer as one: what a process that is gone had in use is in use no longer.

    Its counts stay.
    """
    mark_process_dead(process)  # type: ignore[no-untyped-call]


async def _keep_looking(metrics: Metrics) -> None:
    """Another process may be the one that is asked."""
    while metrics.shared is not None:
        await metrics.look()
        await asyncio.sleep(_LOOK_SECONDS)


def _judged(octets: bytes) -> str:
    try:
        parse_client_key_set(octets)
    except KeySetError:
        return "unusable"
    return "fetched"
