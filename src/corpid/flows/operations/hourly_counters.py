"""Hourly counters of sign-ins and refusals: counted in memory, written at intervals."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeAlias

from corpid.rules.directory.names import is_storable
from corpid.rules.failures import StoreUnavailable
from corpid.rules.hourly_counts import COMPLETED, KEPT_DAYS, UNKNOWN_CLIENT, HourlyCount
from corpid.rules.limits import DAY, HOUR

if TYPE_CHECKING:
    from corpid.stores.sql.registry import Registry

ENTRIES: Final = 5000
"""counters held at most of sign-ins and of authenticated clients: more only pile up while the store is away"""
CLAIMED_ENTRIES: Final = 1000
"""counters held at most of clients that requests only claim to come from: strangers can name any number"""
_LONGEST_CLAIM: Final = 256
"""characters of a claimed identifier; a stranger could fill the memory with longer ones"""
_WRITTEN_AT_ONCE: Final = 200
"""counters of one transaction: a few milliseconds"""

_Key: TypeAlias = tuple[int, str, str]


class HourlyCounters:
    """Counters of this process that are not written yet.

    They are lost if the process dies. A count that finds no room is added to that of unknown clients, of which there is
    one for each reason and hour, so that the totals stay right.
    """

    def __init__(self) -> None:
        self._counts: dict[_Key, int] = {}
        self._claimed: dict[_Key, int] = {}

    def sign_in(self, client_id: str, now: float) -> None:
        """Count a completed sign-in: a client has received its tokens."""
        self._add(self._counts, ENTRIES, (_hour(now), client_id, COMPLETED), 1)

    def refusal(self, client_id: str, reason: str, now: float, *, authenticated: bool) -> None:
        """Count a refusal.

        `client_id` may be empty, or anything if the client has not authenticated. Source: D28
        """
        key = (_hour(now), client_id, reason)
        if authenticated:
            self._add(self._counts, ENTRIES, key, 1)
        elif len(client_id) > _LONGEST_CLAIM or not is_storable(client_id):
            self._add(self._claimed, CLAIMED_ENTRIES, _unknown(key), 1)
        else:
            self._add(self._claimed, CLAIMED_ENTRIES, key, 1)

    async def flush(self, registry: Registry) -> None:
        """Write the counters.

        If the store cannot be reached, they are kept for the next flush.
        """
        for counts, room in ((self._counts, ENTRIES), (self._claimed, CLAIMED_ENTRIES)):
            keys = list(counts)
            for start in range(0, len(keys), _WRITTEN_AT_ONCE):
                part = {key: counts.pop(key) for key in keys[start : start + _WRITTEN_AT_ONCE] if key in counts}
                try:
                    await registry.hourly_counts.add([_count(key, count) for key, count in part.items()])
                except BaseException as error:
                    for key, count in part.items():
                        self._add(counts, room, key, count)
                    if isinstance(error, StoreUnavailable):
                        return
                    raise
                # On SQLite nothing else waits.
                await asyncio.sleep(0)

    def _add(self, counts: dict[_Key, int], room: int, key: _Key, count: int) -> None:
        if key not in counts and len(counts) >= room:
            key = _unknown(key)
        counts[key] = counts.get(key, 0) + count


def _hour(now: float) -> int:
    return int(now) // HOUR * HOUR


def _unknown(key: _Key) -> _Key:
    hour, _, reason = key
    return hour, UNKNOWN_CLIENT, reason


def _count(key: _Key, count: int) -> HourlyCount:
    hour, client_id, reason = key
    return HourlyCount(hour=hour, client_id=client_id, reason=reason, count=count)


async def remove_old(registry: Registry, *, now: float) -> int:
    """Remove the oldest hour's counters once they are no longer kept.

    Returns the number of rows. Repeated calls remove all older ones. Source: D28
    """
    return await registry.hourly_counts.remove_oldest(before=_hour(now) - KEPT_DAYS * DAY)
