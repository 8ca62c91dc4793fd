"""Registration of this process, so that operators see every one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.rules.client_clocks import may_not_record
from corpid.rules.server_processes import KEPT_SECONDS, SEEN_EVERY_SECONDS, live

if TYPE_CHECKING:
    from corpid.rules.server_processes import ServerProcess
    from corpid.stores.sql.registry import Registry


class Registration:
    """Notes that this process lives, and removes old rows.

    No request waits for it.
    """

    def __init__(self, registry: Registry, process: ServerProcess) -> None:
        self._processes: Final = registry.server_processes
        self._clocks: Final = registry.client_clocks
        self._process: Final = process
        self._next = float("-inf")

    async def round(self, *, now: float) -> None:
        """Note this process, once a minute.

        Raises StoreUnavailable. Source: D49
        """
        if now < self._next:
            return
        await self._begin_client_clocks(now)
        await self._processes.note(msgspec.structs.replace(self._process, seen_at=int(now)))
        await self._processes.remove_old(before=int(now) - KEPT_SECONDS)
        self._next = now + SEEN_EVERY_SECONDS

    async def _begin_client_clocks(self, now: float) -> None:
        """Begin the records of clients' clocks, if skews may be missing.

        A process of another version serves, or none of this one did when this one started. docs/decisions/0026
        """
        others = live(await self._processes.list_all(), now=now)
        begins = self._next < 0 and (not others or await self._clocks.recorded_since() is None)
        if begins or may_not_record(others, self._process.version, now=now):
            await self._clocks.begin(now=now)

    async def end(self) -> None:
        """Remove this process, which stops. Raises StoreUnavailable. Source: D49"""
        await self._processes.remove(self._process.process_id)
