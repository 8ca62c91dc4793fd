"""Completed sign-ins and refusals of each hour, by client and reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.rules.hourly_counts import Point

UNKNOWN_CLIENT: Final = ""
"""the client of refusals that name none, or one that is not registered"""
COMPLETED: Final = ""
"""the reason of what was not refused: a completed sign-in"""


class HourlyCount(msgspec.Struct, frozen=True, kw_only=True):
    """A count of one hour, client and reason."""

    hour: int
    """its beginning, epoch seconds"""
    client_id: str
    reason: str
    """its code in the catalogue of refusals, or COMPLETED"""
    count: int


class CountOfReason(msgspec.Struct, frozen=True, kw_only=True):
    """A client's count of one reason, over several hours."""

    client_id: str
    reason: str
    count: int


class HourlyCounts(Protocol):
    """Hourly counters, to which several processes add."""

    async def add(self, counts: Sequence[HourlyCount]) -> None:
        """Add to the counters, in one short transaction.

        Counts of clients that are not registered are added to those of UNKNOWN_CLIENT.
        """

    async def totals(
        self, *, since: int, until: int, client_id: str | None = None, reason: str | None = None
    ) -> list[Point]:
        """The hours that have counts, in order: from `since`, before `until`.

        Of all clients and reasons, or of one.
        """

    async def by_client_and_reason(self, *, since: int, until: int) -> list[CountOfReason]:
        """The sums of each client and reason: from `since`, before `until`."""

    async def remove_oldest(self, *, before: int) -> int:
        """Remove the oldest hour's counts if it began before this moment.

        Returns the number of rows. Called again and again, it removes all older ones.
        """
