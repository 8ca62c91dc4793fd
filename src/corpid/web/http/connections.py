"""The registry of connections, and eviction for new ones (D47)."""

from __future__ import annotations

import math
import resource
from typing import TYPE_CHECKING, Final, Protocol

from corpid.web.telemetry import access_log

if TYPE_CHECKING:
    from collections.abc import Callable

OTHER_FILES: Final = 160
"""that a process opens in addition to connections and the database's pool: engines, metrics, key sets, the log, libraries"""
LEAST: Final = 16
_TELL_SECONDS: Final = 60.0


class OpenConnection(Protocol):
    """A connection, also one whose handshake is not over."""

    def drop(self) -> None:
        """End it at once."""

    def shutdown(self) -> None:
        """Take no further request."""


class ConnectionRegistry:
    """Every connection of a process, at most `limit`.

    Where there is no room the one makes some that has waited longest of those that never asked for anything, else of
    those that have nothing to wait for.
    """

    def __init__(self, limit: int, clock: Callable[[], float]) -> None:
        """`clock` gives seconds, from anywhere."""
        self.limit: Final = limit
        self._clock = clock
        self._all: set[OpenConnection] = set()
        self._silent: dict[OpenConnection, None] = {}
        self._idle: dict[OpenConnection, None] = {}
        self._sent_away = 0
        self._told_at = -math.inf

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
        return True

    def asks(self, connection: OpenConnection) -> None:
        """Note a whole request: the connection is no longer evicted."""
        self._silent.pop(connection, None)
        self._idle.pop(connection, None)

    def rests(self, connection: OpenConnection) -> None:
        """It has its answers."""
        if connection in self._all:
            self._idle[connection] = None

    def leaves(self, connection: OpenConnection) -> None:
        """It has ended."""
        self.asks(connection)
        self._all.discard(connection)

    def all(self) -> tuple[OpenConnection, ...]:
        """The open connections."""
        return tuple(self._all)

    def _make_room(self) -> bool:
        self._tell()
        for waiting in (self._silent, self._idle):
            oldest = next(iter(waiting), None)
            if oldest is not None:
                self.leaves(oldest)
                oldest.drop()
                return True
        return False

    def _tell(self) -> None:
        self._sent_away += 1
        now = self._clock()
        if now - self._told_at < _TELL_SECONDS:
            return
        access_log.log().warning(
            "connections_full",
            detail=f"{self.limit} are open; ended or turned away since the last such line: {self._sent_away}",
        )
        self._told_at, self._sent_away = now, 0


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
    return max(LEAST, given - others - OTHER_FILES)
