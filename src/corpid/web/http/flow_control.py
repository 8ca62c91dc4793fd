"""Flow control of a connection, so that neither side keeps too much."""

from __future__ import annotations

import asyncio
from typing import Final

HIGH_WATER_BYTES: Final = 65536
"""of a body that waits for the application; beyond them nothing more is read"""


class FlowControl:
    """The pauses of a connection's reading and writing.

    The transport says when writing pauses, the connection when reading does. Source: D47
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._writable = asyncio.Event()
        self._writable.set()
        self.read_paused = False

    @property
    def write_paused(self) -> bool:
        """True if nothing more can be written for now."""
        return not self._writable.is_set()

    async def drain(self) -> None:
        """Wait until more can be written."""
        await self._writable.wait()

    def pause_reading(self) -> None:
        """Read nothing more; again changes nothing."""
        if not self.read_paused:
            self.read_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on; again changes nothing."""
        if self.read_paused:
            self.read_paused = False
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        """Let writers wait."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let writers go on; again changes nothing."""
        self._writable.set()
