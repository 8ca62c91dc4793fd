"""Work that belongs to no request: it begins some seconds later, so that nobody can tell from outside whether there was any (D47)."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from contextvars import Context
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

WAITING: Final = 200
"""errands that wait or are done at most; a further one is dropped"""
_SHORTEST_MILLISECONDS: Final = 1000
_LONGEST_MILLISECONDS: Final = 5000
"""of the pause, which every errand draws for itself"""
_DRAIN_SECONDS: Final = 5.0


class Errands:
    """To be used in a running loop, and closed. `tell` writes an event and its detail to the log."""

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        self._tell: Final = tell
        self._under_way: Final[set[asyncio.Task[None]]] = set()
        self._hurry = asyncio.Event()

    def later(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do this after a random pause; a full bag drops it, which the log says. Never waits, never raises.

        Source: D47
        """
        if len(self._under_way) >= WAITING:
            self._tell("errand_dropped", f"{WAITING} errands are waiting already")
            return
        # The context of the request would put what is done here into its log lines and its trace.
        task = asyncio.create_task(self._run(work, self._hurry), context=Context())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def settle(self) -> None:
        """Do at once what waits; what is not done within a few seconds is dropped, which the log says.

        Source: DESIGN, Reliability
        """
        hurried, self._hurry = self._hurry, asyncio.Event()
        hurried.set()
        if not self._under_way:
            return
        _, late = await asyncio.wait(self._under_way, timeout=_DRAIN_SECONDS)
        for task in late:
            task.cancel()
        if late:
            self._tell("errand_dropped", f"{len(late)} errands were not done within {_DRAIN_SECONDS:g} seconds")

    async def _run(self, work: Callable[[], Awaitable[None]], hurry: asyncio.Event) -> None:
        pause = _SHORTEST_MILLISECONDS + secrets.randbelow(_LONGEST_MILLISECONDS - _SHORTEST_MILLISECONDS)
        with suppress(TimeoutError):
            await asyncio.wait_for(hurry.wait(), pause / 1000)
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - it has no caller, and what it says may name somebody (D48)
            self._tell("errand_failed", type(error).__name__)
