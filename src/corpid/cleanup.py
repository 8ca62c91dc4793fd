"""Periodic tasks of a process: removing expired entries, writing usage counts.

A part that fails is logged and tried again in the next round; the others go on.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from corpid.ports import StoreUnavailable
from corpid.web.telemetry import access_log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from corpid.flows.provider import Provider

_SECONDS: Final = 1.0
"""between two rounds"""


@asynccontextmanager
async def cleaning_up(provider: Provider) -> AsyncIterator[None]:
    """Every second, until the context ends.

    Then what was counted is written once more.
    """
    work = _Sweeping(provider)
    sweeper = asyncio.create_task(work.rounds())
    try:
        yield
    finally:
        sweeper.cancel()
        with suppress(asyncio.CancelledError):
            await sweeper
        await work.flush()


class _Sweeping:
    def __init__(self, provider: Provider) -> None:
        self._provider: Final = provider
        self._failing: Final[dict[str, str]] = {}
        """the logged error of each part that fails, so that it is logged once"""

    async def rounds(self) -> None:
        while True:
            await asyncio.sleep(_SECONDS)
            now = self._provider.clock()
            await self._tried("short-lived state", self._provider.transient.sweep(now=now))
            await self._tried("sessions", self._provider.registry.sessions.sweep(now=now))
            await self.flush()

    async def flush(self) -> None:
        await self._tried("usage counts", self._provider.usage.flush(self._provider.registry))

    async def _tried(self, part: str, work: Awaitable[object]) -> None:
        try:
            await work
        except StoreUnavailable as error:
            self._tell(part, str(error), None)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next round must come
            self._tell(part, type(error).__name__, error)
        else:
            self._failing.pop(part, None)

    def _tell(self, part: str, reason: str, error: Exception | None) -> None:
        if self._failing.get(part) != reason:
            access_log.log().error("sweep_failed", detail=f"{part}: {reason}", exc_info=error)
        self._failing[part] = reason
