"""Registration of this process, so that operators see every one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.rules.server_processes import KEPT_SECONDS, SEEN_EVERY_SECONDS

if TYPE_CHECKING:
    from corpid.ports import Registry
    from corpid.rules.server_processes import ServerProcess


class Registration:
    """Notes that this process lives, and removes old rows.

    No request waits for it.
    """

    def __init__(self, registry: Registry, process: ServerProcess) -> None:
        self._processes: Final = registry.server_processes
        self._process: Final = process
        self._next = float("-inf")

    async def round(self, *, now: float) -> None:
        """Note this process, once a minute.

        Raises StoreUnavailable. Source: D49
        """
        if now < self._next:
            return
        await self._processes.note(msgspec.structs.replace(self._process, seen_at=int(now)))
        await self._processes.remove_old(before=int(now) - KEPT_SECONDS)
        self._next = now + SEEN_EVERY_SECONDS

    async def end(self) -> None:
        """Remove this process, which stops. Raises StoreUnavailable. Source: D49"""
        await self._processes.remove(self._process.process_id)
