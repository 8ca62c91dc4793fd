"""The serving processes of a deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from corpid.rules.server_processes import ServerProcess


class ServerProcesses(Protocol):
    """Rows in which processes say that they serve."""

    async def note(self, process: ServerProcess) -> None:
        """Add the row of a process, or replace it."""

    async def remove(self, process_id: str) -> None:
        """Remove the row of a process that stops."""

    async def remove_old(self, *, before: int) -> int:
        """Remove those last seen before this moment; how many that were."""

    async def list_all(self) -> list[ServerProcess]:
        """In the order of host, start and identifier."""
