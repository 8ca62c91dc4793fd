"""Connections of a pool, passed on from caller to caller.

A connection that did its work goes to the caller who has waited longest, or is kept for the next one, since the pool's
own giving back and taking costs more than a read. One that failed goes back to the pool, which makes sure that it is
sound.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import Any, Final

import asyncpg

DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
"""the driver's exceptions; a timeout is an OSError"""
ACQUIRE_SECONDS: Final = 2.0
"""how long a request waits for a connection before it is refused"""


class Connections:
    """The connections of one process. Used and closed in one event loop."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool: Final = pool
        self._loop: Final = asyncio.get_running_loop()
        self._idle: Final[list[Any]] = []
        self._taken: Final[set[Any]] = set()
        """those that are not in the pool: in use, or idle here"""
        self._requested = 0
        """those that the pool has been asked for"""
        self._waiting: Final[deque[asyncio.Future[Any]]] = deque()
        """callers who wait: each gets a connection, or None if the pool may open another"""

    @property
    def in_use(self) -> int:
        """Connections that a statement or a transaction has now."""
        return int(self._pool.get_size()) - int(self._pool.get_idle_size()) - len(self._idle)

    async def acquire(self) -> Any:  # noqa: ANN401  (the pool's proxy of a connection)
        """Return an open connection. Raises DRIVER_ERRORS, also after ACQUIRE_SECONDS."""
        end = self._loop.time() + ACQUIRE_SECONDS
        while True:
            if self._idle:
                connection = self._idle.pop()
            elif len(self._taken) + self._requested < self._pool.get_max_size():
                return await self._from_pool()
            else:
                connection = await self._from_another_caller(end)
            if connection is not None and _is_open(connection):
                return connection
            if connection is not None:
                await self.release(connection)

    def keep(self, connection: Any) -> None:  # noqa: ANN401
        """Keep a connection that did its work."""
        if not self._hand_over(connection):
            self._idle.append(connection)

    async def release(self, connection: Any) -> None:  # noqa: ANN401
        """Give a connection back to the pool, once.

        One that cannot be given back is closed by the pool: the answer was had before.
        """
        try:
            with suppress(*DRIVER_ERRORS):
                await self._pool.release(connection)
        finally:
            if connection in self._taken:
                self._taken.remove(connection)
                self._hand_over(None)

    async def drop(self, connection: Any) -> None:  # noqa: ANN401
        """Close a connection instead of keeping it; the pool opens another."""
        with suppress(asyncpg.InterfaceError):
            connection.terminate()
        await self.release(connection)

    async def close(self) -> None:
        try:
            async with asyncio.timeout(ACQUIRE_SECONDS):
                while self._idle:
                    await self.release(self._idle.pop())
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    async def _from_pool(self) -> Any:  # noqa: ANN401
        self._requested += 1
        connection = None
        try:
            connection = await self._pool.acquire(timeout=ACQUIRE_SECONDS)
        finally:
            self._requested -= 1
            if connection is None:
                self._hand_over(None)
            else:
                self._taken.add(connection)
        return connection

    async def _from_another_caller(self, end: float) -> Any:  # noqa: ANN401
        """Wait for a connection of another caller.

        Raises TimeoutError at `end`, by the loop's time.
        """
        waiting = self._loop.create_future()
        self._waiting.append(waiting)
        too_late = self._loop.call_at(end, _time_out, waiting)
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                self._pass_on(waiting.result())
            raise
        finally:
            too_late.cancel()

    def _pass_on(self, connection: Any) -> None:  # noqa: ANN401
        """Pass on what a caller got and no longer wants."""
        if connection is None:
            self._hand_over(None)
        else:
            self.keep(connection)

    def _hand_over(self, connection: Any) -> bool:  # noqa: ANN401
        """Hand over to the caller who has waited longest.

        False if nobody waits.
        """
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(connection)
                return True
        return False


def _time_out(waiting: asyncio.Future[Any]) -> None:
    if not waiting.done():
        waiting.set_exception(TimeoutError())


def _is_open(connection: Any) -> bool:  # noqa: ANN401
    """Return whether a connection is open and not returned to the pool.

    The pool takes one back if the server ended it.
    """
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:
        return False
