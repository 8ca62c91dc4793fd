"""Connections of a process: limits, shared state, eviction, each worker's share (D47)."""

from __future__ import annotations

import asyncio
import math
import resource
from collections import deque
from dataclasses import dataclass, field
from mmap import mmap
from typing import TYPE_CHECKING, Final, Protocol

from corpid.rules import limits as law
from corpid.web.telemetry import access_log

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from starlette.types import ASGIApp

    from corpid.web.http.addresses import ClientAddresses

OVERLOADED: Final = "overloaded"
"""in a request's `scope["state"]`: too many are being answered, so this one is to be refused at once"""
TOO_LARGE: Final = "too_large"
"""in a request's `scope["state"]`: its form announced a larger body than it may have, and none of it is read"""
PIPELINED_AT_ONCE: Final = 4
"""pipelined requests, of all connections, that begin in one iteration of the event loop"""
OTHER_FILES: Final = 160
"""that a process opens in addition to connections and the database's pool: engines, metrics, key sets, the log,
libraries"""
_LEAST_CONNECTIONS: Final = 16
_LOG_SECONDS: Final = 60.0
_BYTES: Final = 8
_NOT_ACCEPTING: Final = -1
_SLACK: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a connection; sizes in bytes, times in seconds (D47)."""

    head_bytes: int = law.HEAD_BYTES
    """request line and headers"""
    body_bytes: int = law.BODY_BYTES
    bulk_body_bytes: int = law.BULK_BODY_BYTES
    """of a body that the application reads itself, of callers that it knows"""
    head_seconds: float = law.HEAD_SECONDS
    """from a request's first byte to the end of its headers, and from a connection's beginning to that first byte"""
    body_seconds: float = law.BODY_SECONDS
    """from a request's first byte to the end of its body"""
    bulk_body_seconds: float = law.BULK_BODY_SECONDS
    """from the moment when the application begins to read a body to its end"""
    idle_seconds: float = 75.0
    """between an answer and the next request"""
    unread_seconds: float = 30.0
    """for the caller to make room when it does not read its answer"""
    linger_seconds: float = 2.0
    """after a refusal, so that the caller reads it before the connection is reset"""
    linger_bytes: int = 1 << 20
    """thrown away after a refusal"""
    header_fields: int = 128
    pipelined: int = 16
    """requests that may wait while an earlier one is answered"""
    connections: int = 4000
    """held at the same time by one process, also those that have not shaken hands"""
    concurrent_requests: int = 1000
    """answered at the same time by one process, over all its connections; what begins beyond them is OVERLOADED"""

    @property
    def wire_bytes(self) -> int:
        """The most bytes of one request on the wire.

        Chunk sizes, extensions and trailers count here only.
        """
        return 8 * (self.head_bytes + self.body_bytes)

    @property
    def bulk_wire_bytes(self) -> int:
        """The same, of a request whose body the application reads itself."""
        return 8 * (self.head_bytes + self.bulk_body_bytes)


class PipelineQueue:
    """A queue of connections whose next pipelined request can begin.

    A few begin in each iteration of the event loop, which handles every other connection in between. Source: D47
    """

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def add(self, begin: Callable[[], None]) -> None:
        """Call `begin` after those that were added before."""
        self._waiting.append(begin)
        self._schedule()

    def _schedule(self) -> None:
        if self._waiting and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        self._scheduled = False
        for _ in range(min(PIPELINED_AT_ONCE, len(self._waiting))):
            self._waiting.popleft()()
        self._schedule()


@dataclass(slots=True, kw_only=True)
class ServerState:
    """The state that all connections of a server share."""

    app: ASGIApp
    limits: Limits
    bodiless: Collection[str]
    """the paths at which a request's body is not read"""
    streamed: Collection[str]
    """the paths at which the application reads a large body itself"""
    forms: tuple[str, ...]
    """the beginnings of the paths at which the application refuses a form that is too large, on a page"""
    addresses: ClientAddresses
    """the proxies in front, for the log's lines of refused requests"""
    open_connections: ConnectionRegistry
    connections: set[ExpiringConnection] = field(default_factory=set)
    """those that were made"""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    pipelined: PipelineQueue = field(default_factory=PipelineQueue)
    in_progress: int = 0
    """requests that are being answered, without those refused as too many"""
    default_headers: bytes = b""
    """of every response; whole lines"""
    moment: int = 0
    """of their date, epoch seconds"""


class OpenConnection(Protocol):
    """A connection, also one whose handshake is not over."""

    def drop(self) -> None:
        """End it at once."""

    def shutdown(self) -> None:
        """Take no further request."""


class ExpiringConnection(OpenConnection, Protocol):
    """A connection that was made."""

    def expire(self, now: float) -> None:
        """Close it if it exceeds a time limit.

        `now` is the loop's time.
        """


class ConnectionRegistry:
    """Every connection of a process, at most `limit`.

    When it is full, a new one evicts the connection that has been open longest without a request, else the one that has
    been idle longest.
    """

    def __init__(self, limit: int, clock: Callable[[], float], share: ConnectionShare | None = None) -> None:
        """`clock` gives seconds, from anywhere. `share` is told the number of connections."""
        self.limit: Final = limit
        self._clock = clock
        self.share: Final = share
        self._all: set[OpenConnection] = set()
        self._silent: dict[OpenConnection, None] = {}
        self._idle: dict[OpenConnection, None] = {}
        self._sent_away = 0
        self._logged_at = -math.inf

    def __len__(self) -> int:
        """The number of open connections."""
        return len(self._all)

    def admit(self, connection: OpenConnection) -> bool:
        """Admit a connection, evicting another if full.

        False if none can be evicted. Source: D47
        """
        if len(self._all) >= self.limit and not self._make_room():
            return False
        self._all.add(connection)
        self._silent[connection] = None
        self._note_share()
        return True

    def request_started(self, connection: OpenConnection) -> None:
        """Note a whole request: the connection is no longer evicted."""
        self._silent.pop(connection, None)
        self._idle.pop(connection, None)

    def became_idle(self, connection: OpenConnection) -> None:
        """Note that every request was answered: the connection may be evicted."""
        if connection in self._all:
            self._idle[connection] = None

    def closed(self, connection: OpenConnection) -> None:
        """Forget a connection that has ended."""
        self.request_started(connection)
        self._all.discard(connection)
        self._note_share()

    def _note_share(self) -> None:
        if self.share is not None:
            self.share.note(len(self._all))

    def all(self) -> tuple[OpenConnection, ...]:
        return tuple(self._all)

    def _make_room(self) -> bool:
        self._log_eviction()
        for waiting in (self._silent, self._idle):
            oldest = next(iter(waiting), None)
            if oldest is not None:
                self.closed(oldest)
                oldest.drop()
                return True
        return False

    def _log_eviction(self) -> None:
        self._sent_away += 1
        now = self._clock()
        if now - self._logged_at < _LOG_SECONDS:
            return
        access_log.log().warning(
            "connections_full",
            detail=f"{self.limit} are open; ended or turned away since the last such line: {self._sent_away}",
        )
        self._logged_at, self._sent_away = now, 0


class ConnectionShares:
    """The number of open connections of each worker.

    It lies in memory that all of them share, and is made before they are forked.
    """

    def __init__(self, workers: int) -> None:
        self._counts: Final = memoryview(mmap(-1, workers * _BYTES)).cast("q")
        for place in range(workers):
            self._counts[place] = _NOT_ACCEPTING

    def share_of(self, place: int) -> ConnectionShare:
        return ConnectionShare(self._counts, place)

    def free(self, place: int) -> None:
        """Forget a worker that has ended; it may have been killed."""
        self._counts[place] = _NOT_ACCEPTING


class ConnectionShare:
    """One worker's connections among those of all."""

    def __init__(self, counts: memoryview[int], place: int) -> None:
        self._counts: Final = counts
        self._place: Final = place
        self._accepts = False

    def begin(self) -> None:
        """Tell the others that this worker accepts connections."""
        self._accepts = True
        self.note(0)

    def note(self, count: int) -> None:
        """Tell the others how many connections this worker has open."""
        if self._accepts:
            self._counts[self._place] = count

    def end(self) -> None:
        """Tell the others that this worker accepts no further connections."""
        self.note(_NOT_ACCEPTING)
        self._accepts = False

    @property
    def is_exceeded(self) -> bool:
        """True if this worker accepts and has clearly more connections than another.

        More by over four and over an eighth. Callers that open a connection for each request rarely get so far.
        """
        if not self._accepts:
            return False
        least = min(count for count in self._counts if count != _NOT_ACCEPTING)
        return self._counts[self._place] > least + max(_SLACK, least // 8)


def files_for(connections: int, others: int) -> int:
    """Raise the limit of open files for connections and others.

    Returns how many connections it allows. The system's soft limit is raised, up to its hard one and no further than
    needed. Source: D47
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + others + OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return connections
    given = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
    resource.setrlimit(resource.RLIMIT_NOFILE, (given, hard))
    return max(_LEAST_CONNECTIONS, given - others - OTHER_FILES)
