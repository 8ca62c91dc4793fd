"""Background tasks, delayed so that a response's time does not reveal them.

Source: D47
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context
from typing import Final

WAITING: Final = 200
"""tasks that wait or run at most; if there are more, one is dropped"""
_SHORTEST_MILLISECONDS: Final = 1000
_LONGEST_MILLISECONDS: Final = 5000
"""of the pause, which is random for each task"""
_DRAIN_SECONDS: Final = 5.0


class BackgroundTasks:
    """Tasks of a running event loop, to be settled at the end.

    `log` writes an event and its detail to the log.
    """

    def __init__(self, log: Callable[[str, str], None]) -> None:
        self._log: Final = log
        self._under_way: Final[set[asyncio.Task[None]]] = set()
        self._waiting: Final[dict[asyncio.Task[None], str]] = {}
        """the waiting ones, each with its source"""
        self._hurry = asyncio.Event()

    def later(self, work: Callable[[], Awaitable[None]], *, place: str) -> None:
        """Do this after a random pause.

        `place` is its source. Never waits, never raises.

        When full, it drops the newest task of the busiest source, and logs that, so no source keeps the others out.
        Source: D47
        """
        if len(self._under_way) >= WAITING:
            self._log("background_task_dropped", f"{WAITING} tasks are waiting already")
            if not self._make_room(place):
                return
        # The context of the request would put what is done here into its log lines and its trace.
        task = asyncio.create_task(self._run(work, self._hurry), context=Context())
        self._under_way.add(task)
        self._waiting[task] = place
        task.add_done_callback(self._forget)

    def _make_room(self, place: str) -> bool:
        """Drop one that waits.

        False if no place has more of them than this one.
        """
        waiting = Counter(self._waiting.values())
        crowded, most = next(iter(waiting.most_common(1)), ("", 0))
        if most <= waiting[place] + 1:
            return False
        newest = next(task for task in reversed(self._waiting) if self._waiting[task] == crowded)
        newest.cancel()
        self._forget(newest)
        return True

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._waiting.pop(task, None)

    async def settle(self) -> None:
        """Run all waiting tasks now.

        Tasks that are not done within a few seconds are dropped, which is logged. Source: D47
        """
        hurried, self._hurry = self._hurry, asyncio.Event()
        hurried.set()
        if not self._under_way:
            return
        _, late = await asyncio.wait(self._under_way, timeout=_DRAIN_SECONDS)
        for task in late:
            task.cancel()
        if late:
            self._log("background_task_dropped", f"{len(late)} tasks were not done within {_DRAIN_SECONDS:g} seconds")

    async def _run(self, work: Callable[[], Awaitable[None]], hurry: asyncio.Event) -> None:
        pause = _SHORTEST_MILLISECONDS + secrets.randbelow(_LONGEST_MILLISECONDS - _SHORTEST_MILLISECONDS)
        with suppress(TimeoutError):
            await asyncio.wait_for(hurry.wait(), pause / 1000)
        if (own := asyncio.current_task()) is not None:
            self._waiting.pop(own, None)
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - it has no caller, and what it says may name somebody (D48)
            self._log("background_task_failed", type(error).__name__)
