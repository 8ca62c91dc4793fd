"""Metrics for Prometheus, on a separate address.

Labels are names that this program gives: the route, the class of the status, the code of the error. None holds
a client, a person or an entity, so their number is bounded and a scrape reveals no one.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final, Literal

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.mmap_dict import MmapedDict, mmap_key
from prometheus_client.multiprocess import MultiProcessCollector

from corpid import __version__
from corpid.flows.directory.queued_emails import INVITATION_OUTCOMES, NOTICE_OUTCOMES
from corpid.jose.keys import KeySetError, parse_client_key_set
from corpid.rules.failures import StoreUnavailable
from corpid.rules.signing_keys import STANDBY
from corpid.web.http.addresses import OwnHosts
from corpid.web.http.connections import ConnectionRegistry, Limits
from corpid.web.http.middleware import NO_ENDPOINT, named_hosts
from corpid.web.http.requests import header_values
from corpid.web.http.server import Server
from corpid.web.telemetry import access_log

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping

    from starlette.types import Receive, Scope, Send

    from corpid.flows.operations.signing_keys import SigningKeys

    _Several = Literal["livesum", "livemin", "livemax", "max", "mostrecent"]

PATH: Final = "/metrics"
DIRECTORY_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
"""names the folder through which several processes answer as one; set before this module is imported"""
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_FETCH_SECONDS: Final = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 6.0)
"""a fetch may wait three seconds for its turn, and take three"""
_LOOK_SECONDS: Final = 5.0
_WAIT_SECONDS: Final = 2.0
"""for engines, in a scrape; an engine that hangs may take three times as long to be given up"""
_RETRY_SECONDS: Final = (0.005, 0.02, 0.1)
"""after which the shared files are read again"""
_TURN: Final = "turn"
_CONNECTIONS: Final = 32
"""of metrics readers, at most"""
_ENDED: Final = "corpid_workers_ended"
_ENDED_HELP: Final = "Worker processes that ended, and were replaced."
_REASONS: Final = 64
"""reasons with separate counts; any beyond them, by a mistake of ours, count as one"""
_FOUND: Final = 200
_REFUSALS: Final = {
    400: b"A request must have exactly one Host header\n",
    404: b"GET /metrics\n",
    421: b"This host name is not served here: use the one in metrics_address, or name it in allowed_hosts\n",
}


def _nothing() -> int:
    return 0


def _never() -> float:
    return 0.0


async def _no_parts() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class GaugeSources:
    """Sources of the gauges, read on each scrape.

    Each function is cheap, except `parts`.
    """

    clock: Callable[[], float]
    signing_keys: SigningKeys
    hashing: Callable[[], int] = _nothing
    """password checks that run or wait"""
    hashing_limit: int = 0
    """how many may"""
    pool: Callable[[], int] = _nothing
    """connections of the database's pool that are in use"""
    pool_limit: int = 0
    """how many may be; 0 if the engine has no pool"""
    recovering_until: Callable[[], float] = _never
    """the end of a recovery from a loss of data, epoch seconds; 0.0 if there is none (D67)"""
    audit_stream_lag: Callable[[], float] = _never
    """seconds that the oldest entry waits for the audit's stream; 0.0 if none does"""
    parts: Callable[[], Awaitable[Mapping[str, str]]] = _no_parts
    """every part that a request needs, and why it does not work; empty: it works (D49)"""


class Metrics:
    """Every metric of one process.

    `shared`: the folder of DIRECTORY_VARIABLE, shared by several processes.

    `issuers`: the deployment has several, and requests are counted for each (D62); else there is no such label.
    """

    def __init__(self, shared: str | None = None, *, issuers: bool = False) -> None:
        self._issuers: Final = issuers
        self.watched: GaugeSources | None = None
        self.hosts = OwnHosts()
        self.open_connections: ConnectionRegistry | None = None
        """the connections of the provider's own address"""
        self.certificate_end: Callable[[], float] = _never
        """when the certificate of own TLS expires, epoch seconds; 0.0 without own TLS"""
        self.mail_pauses: dict[str, Callable[[], float]] = {}
        """seconds between two attempts to send, by what is sent; 0.0 if the last e-mail was sent"""
        self._looking: asyncio.Task[None] | None = None
        self.shared: Final = shared
        self.registry: Final = CollectorRegistry()
        self._children: dict[tuple[str, int, str, str], tuple[Counter, Histogram]] = {}
        self._reasons: set[str] = set()
        self._declare_counters()
        self._declare_gauges()

    def _declare_counters(self) -> None:
        def counter(name: str, meaning: str, *labels: str) -> Counter:
            return Counter(name, meaning, labels, registry=self.registry)

        def histogram(name: str, meaning: str, seconds: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(name, meaning, labels, buckets=seconds, registry=self.registry)

        more = ("issuer",) if self._issuers else ()
        self._requests = counter("corpid_requests", "Answered requests.", "endpoint", "outcome", "reason", *more)
        labels = ("endpoint", "error", "reason", "client", *more)
        self._refusals = counter("corpid_refusals", "Refusals by reason.", *labels)
        self._latency = histogram("corpid_request_seconds", "Time to answer.", _SECONDS, "endpoint", *more)
        meaning = "Key sets fetched from relying parties."
        self._fetches = counter("corpid_client_key_fetches", meaning, "outcome")
        self._fetching = histogram("corpid_client_key_fetch_seconds", "Time to fetch a key set.", _FETCH_SECONDS)
        self._invitations = counter("corpid_invitation_emails", "E-mails of invitations.", "outcome")
        meaning = "E-mails about the administration of entities."
        self._notices = counter("corpid_notice_emails", meaning, "outcome")
        for counted, outcomes in (
            (self._fetches, ("fetched", "unusable", "failed")),
            (self._invitations, INVITATION_OUTCOMES),
            (self._notices, NOTICE_OUTCOMES),
        ):
            for outcome in outcomes:
                counted.labels(outcome)
        meaning = "Seals of the audit found to be missing or changed."
        self._changed_seals = counter("corpid_audit_seals_changed", meaning)
        counter(_ENDED, _ENDED_HELP)  # counted by the process that replaces them

    def _declare_gauges(self) -> None:
        def gauge(name: str, meaning: str, several: _Several, *labels: str) -> Gauge:
            """`several` says how the values of several processes become one."""
            return Gauge(name, meaning, labels, registry=self.registry, multiprocess_mode=several)

        self._hashing = gauge("corpid_hashing_pending", "Password checks that run or wait.", "livesum")
        self._hashing_limit = gauge("corpid_hashing_limit", "Password checks that may run or wait.", "livesum")
        meaning = "Connections of the pool in use; 0 where the engine has no pool."
        self._pool = gauge("corpid_database_connections_in_use", meaning, "livesum")
        meaning = "Connections that the pool may have; 0 where the engine has no pool."
        self._pool_limit = gauge("corpid_database_connections_limit", meaning, "livesum")
        self._connections = gauge("corpid_connections", "Connections of callers.", "livesum")
        self._connections_limit = gauge(
            "corpid_connections_limit", "Connections of callers that there may be.", "livesum"
        )
        self._ready = gauge("corpid_ready", "1 if the part works, else 0.", "livemin", "part")
        meaning = "1 if the task's last run failed, else 0."
        self._failing = gauge("corpid_periodic_task_failing", meaning, "livemax", "task")
        meaning = "Seconds between two attempts while the mail server takes no e-mail; 0 if the last one was sent."
        self._mail_pause = gauge("corpid_email_pause_seconds", meaning, "livemin", "emails")
        meaning = "When the certificate of own TLS expires; 0 without own TLS."
        self._certificate_end = gauge("corpid_tls_certificate_expiry_timestamp_seconds", meaning, "livemin")
        meaning = "Seconds for which callers may still be told to wait because short-lived state was lost; else 0."
        self._recovery = gauge("corpid_data_lost_seconds", meaning, "livemax")
        meaning = (
            "Age of the oldest audit entry that audit_stream has not received; 0: none waits, or there is no stream."
        )
        self._audit_stream = gauge("corpid_audit_stream_lag_seconds", meaning, "livemax")
        gauge("corpid_build_info", "1, for the version.", "max", "version").labels(__version__).set(1)
        meaning = "When the active signing key began to sign, and when the next one will; 0: there is no next one."
        self._keys = gauge("corpid_signing_key_start_timestamp_seconds", meaning, "mostrecent", "key")

    def request(
        self,
        endpoint: str,
        status: int,
        error: str,
        seconds: float,
        reason: str = "",
        client: str = "stranger",
        issuer: str = "",
    ) -> None:
        """Count an answered request.

        It is counted by its route, status and error code (or nothing), with its duration in seconds. A refusal is also
        counted by its reason, and by whether its `client` had `authenticated` or was a `stranger`. `issuer` is the one
        that answered, if there are several.
        """
        found = self._children.get((endpoint, status, error, issuer))
        counter, histogram = found or self._child(endpoint, status, error, issuer)
        counter.inc()
        histogram.observe(seconds)
        if reason:
            self._refusals.labels(endpoint, error, reason, client, *((issuer,) if self._issuers else ())).inc()

    def _child(self, endpoint: str, status: int, reason: str, issuer: str) -> tuple[Counter, Histogram]:
        more = (issuer,) if self._issuers else ()
        if len(self._reasons) < _REASONS:
            self._reasons.add(reason)
        code = reason if reason in self._reasons else NO_ENDPOINT
        child = (
            self._requests.labels(endpoint, f"{status // 100}xx", code, *more),
            self._latency.labels(endpoint, *more),
        )
        if code == reason:
            self._children[endpoint, status, reason, issuer] = child
        return child

    def invitation(self, outcome: str) -> None:
        """Count an e-mail of an invitation, by outcome (D60)."""
        self._invitations.labels(outcome).inc()

    def notice(self, outcome: str) -> None:
        """Count an e-mail of notices, by outcome."""
        self._notices.labels(outcome).inc()

    def task(self, name: str, *, failing: bool) -> None:
        """Note whether the last run of a periodic task failed."""
        self._failing.labels(name).set(failing)

    def seals_changed(self) -> None:
        """Count a missing or changed seal of the audit (D58)."""
        self._changed_seals.inc()

    def counting(self, fetch: Callable[[str], Awaitable[bytes]]) -> Callable[[str], Awaitable[bytes]]:
        """A fetch of key sets, counted by result.

        Fetched, unusable (no key set), or failed. Source: D27
        """

        async def counted(url: str) -> bytes:
            outcome = "failed"
            started = perf_counter()
            try:
                octets = await fetch(url)
                outcome = _judged(octets)
            finally:
                self._fetches.labels(outcome).inc()
                self._fetching.observe(perf_counter() - started)
            return octets

        return counted

    async def update_gauges(self) -> None:
        """Update the gauges.

        A source that fails leaves its gauge as it was, and so does an engine that answers late, until it has answered.
        """
        if self.open_connections is not None:
            self._connections.set(len(self.open_connections))
            self._connections_limit.set(self.open_connections.limit)
        self._certificate_end.set(self.certificate_end())
        for emails, pause in self.mail_pauses.items():
            self._mail_pause.labels(emails).set(pause())
        if self.watched is None:
            return
        self._hashing.set(self.watched.hashing())
        self._hashing_limit.set(self.watched.hashing_limit)
        self._pool.set(self.watched.pool())
        self._pool_limit.set(self.watched.pool_limit)
        self._recovery.set(max(0.0, self.watched.recovering_until() - self.watched.clock()))
        self._audit_stream.set(self.watched.audit_stream_lag())
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_at_engines(self.watched))
        await asyncio.wait({self._looking}, timeout=_WAIT_SECONDS)

    async def _look_at_engines(self, watched: GaugeSources) -> None:
        parts = await watched.parts()
        for part, reason in parts.items():
            self._ready.labels(part).set(not reason)
        if any(parts.values()):
            return
        now = watched.clock()
        with suppress(StoreUnavailable, ValueError):
            ring = (await watched.signing_keys.keys_at(now)).ring
            ahead = [key.active_from for key in ring.by_kid.values() if now < key.active_from < STANDBY]
            self._keys.labels("active").set(ring.active.active_from)
            self._keys.labels("next").set(min(ahead, default=0))

    async def text(self) -> bytes:
        """All metrics, in Prometheus's text format.

        Of all processes that share a folder.
        """
        await self.update_gauges()
        if self.shared is None:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, self.shared)  # type: ignore[no-untyped-call]
        for seconds in _RETRY_SECONDS:
            with suppress(struct.error):
                return _collected(registry, self.shared)
            await asyncio.sleep(seconds)
        return _collected(registry, self.shared)

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """The application of the metrics address: GET /metrics only."""
        status = self._judge(scope)
        body = await self.text() if status == _FOUND else _REFUSALS[status]
        kind = CONTENT_TYPE_LATEST if status == _FOUND else "text/plain; charset=utf-8"
        headers = [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _judge(self, scope: Scope) -> int:
        hosts = named_hosts(header_values(scope["headers"]))
        if len(hosts) != 1:
            return 400
        if not self.hosts.allows(hosts[0], scope["server"]):
            return 421
        return _FOUND if scope["path"] == PATH and scope["method"] in {"GET", "HEAD"} else 404


def _collected(registry: CollectorRegistry, shared: str) -> bytes:
    """The metrics of all processes that share the folder.

    Raises struct.error while one of them creates a file, which is empty at first.
    """
    with _in_turn(shared, fcntl.LOCK_SH):
        return generate_latest(registry)


@asynccontextmanager
async def serve_metrics(metrics: Metrics, sockets: Iterable[socket.socket]) -> AsyncIterator[None]:
    """Answer on these bound sockets until the context ends.

    They are never those of the provider.
    """
    server = Server(metrics, limits=Limits(connections=_CONNECTIONS), drain_seconds=0)
    await server.start(sockets)
    looking = asyncio.create_task(_keep_looking(metrics))
    try:
        yield
    finally:
        looking.cancel()
        server.force()
        await server.stop()


def worker_ended(process: int, shared: str) -> None:
    """Count an ended process, drop its gauges, and merge its counts.

    If several processes answer as one. All ended ones share their files, since each file costs every scrape.
    """
    folder = Path(shared)
    try:
        with _in_turn(shared, fcntl.LOCK_EX):
            for kind in ("counter", "histogram"):
                _move(folder / f"{kind}_{process}.db", folder / f"{kind}_0.db")
            for gauge in folder.glob(f"gauge_*_{process}.db"):
                gauge.unlink()
            _count_ended(folder / "counter_0.db")
    except (OSError, RuntimeError, ValueError, struct.error) as error:
        access_log.log().warning("metrics_not_added", detail=f"process {process}: {error}")


def _move(left: Path, together: Path) -> None:
    if left.exists():
        if left.stat().st_size:  # not that of a process that was killed while it created the file
            _add(left, together)
        left.unlink()


def _count_ended(together: Path) -> None:
    sums = MmapedDict(str(together))  # type: ignore[no-untyped-call]
    key = mmap_key(_ENDED, f"{_ENDED}_total", [], [], _ENDED_HELP)
    known, _ = sums.read_value(key)  # type: ignore[no-untyped-call]
    sums.write_value(key, known + 1, 0.0)  # type: ignore[no-untyped-call]
    sums.close()  # type: ignore[no-untyped-call]


def _add(left: Path, together: Path) -> None:
    sums = MmapedDict(str(together))  # type: ignore[no-untyped-call]
    for key, value, _, _ in MmapedDict.read_all_values_from_file(str(left)):  # type: ignore[no-untyped-call]
        known, _ = sums.read_value(key)  # type: ignore[no-untyped-call]
        sums.write_value(key, known + value, 0.0)  # type: ignore[no-untyped-call]
    sums.close()  # type: ignore[no-untyped-call]


@contextmanager
def _in_turn(shared: str, kind: int) -> Iterator[None]:
    """Hold the lock of the shared files.

    No scrape counts a file twice, or none, while it is added to another one.
    """
    descriptor = os.open(Path(shared) / _TURN, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, kind)
        yield
    finally:
        os.close(descriptor)


async def _keep_looking(metrics: Metrics) -> None:
    """Another process may be the one that is asked."""
    while metrics.shared is not None:
        await metrics.update_gauges()
        await asyncio.sleep(_LOOK_SECONDS)


def _judged(octets: bytes) -> str:
    try:
        parse_client_key_set(octets)
    except KeySetError:
        return "unusable"
    return "fetched"
