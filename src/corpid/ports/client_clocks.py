"""The skews of clients' clocks, as they are recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from corpid.rules.client_clocks import ClientClock


class ClientClocks(Protocol):
    """The largest skew of each client (docs/decisions/0026)."""

    async def find(self, client_id: str) -> ClientClock | None:
        """The records of a client; None if there are none."""

    async def note(self, client_id: str, *, skew: int, period: int, now: float) -> None:
        """Record a skew; a larger one of the same period stays.

        It is on disk when this returns. Nothing is recorded of a client that does not exist.
        """

    async def recorded_since(self) -> float | None:
        """Since when every skew is recorded, epoch seconds; None: unknown."""

    async def note_larger(self, *, now: float) -> None:
        """Note a skew above that of clients without a record."""

    async def larger_at(self) -> float | None:
        """When that was noted last, epoch seconds; None: never."""

    async def begin(self, *, now: float) -> None:
        """Begin the records: skews of the time before may be missing."""
