"""Sign-ins, refusals and deprecated usage: buffered, and written at intervals.

What a process has not written is lost if it dies; while the store cannot be reached, it is kept for the next flush.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from corpid.rules.directory.access import Actor, Object, authorise
from corpid.rules.directory.names import is_storable
from corpid.rules.failures import StoreUnavailable
from corpid.rules.hourly_counts import COMPLETED, KEPT_DAYS, UNKNOWN_CLIENT, HourlyCount
from corpid.rules.limits import DAY, HOUR
from corpid.rules.oauth.deprecated_usage import SIGN_IN, UseCount

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from corpid.rules.oauth.refusals import ClientRefusal
    from corpid.stores.sql.registry import Registry

ENTRIES: Final = 5000
"""counters of one kind held at most: more only pile up while the store cannot be reached"""
CLAIMED_ENTRIES: Final = 1000
"""counters held at most of clients that requests only claim to come from: strangers can name any number"""
REFUSALS_KEPT: Final[dict[bool, int]] = {False: 100, True: 20}
"""of each client: those of requests that it made, and those of requests that only claim to be its"""
CLIENTS: Final = 1000
"""clients of each kind whose refusals wait to be written: strangers can claim any number"""
_LONGEST_CLAIM: Final = 256
"""characters of a claimed identifier; a stranger could fill the memory with longer ones"""
_WRITTEN_AT_ONCE: Final = 200
"""counters of one transaction: a few milliseconds"""
_HourlyKey: TypeAlias = tuple[int, str, str]
_UseKey: TypeAlias = tuple[str, str, str]
_Ring: TypeAlias = "deque[ClientRefusal]"
K = TypeVar("K")
V = TypeVar("V")


class HourlyCounters:
    """Hourly counters of sign-ins and refusals.

    A count that finds no room is added to that of unknown clients, of which there is one for each reason and hour, so
    that the totals stay right.
    """

    def __init__(self) -> None:
        self._counts: dict[_HourlyKey, int] = {}
        self._claimed: dict[_HourlyKey, int] = {}

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

        async def write(part: dict[_HourlyKey, int]) -> None:
            await registry.hourly_counts.add(
                [
                    HourlyCount(hour=hour, client_id=client_id, reason=reason, count=count)
                    for (hour, client_id, reason), count in part.items()
                ]
            )

        for counts, room in ((self._counts, ENTRIES), (self._claimed, CLAIMED_ENTRIES)):

            def take_back(
                key: _HourlyKey, count: int, counts: dict[_HourlyKey, int] = counts, room: int = room
            ) -> None:
                self._add(counts, room, key, count)

            if not await _write_in_parts(counts, write, take_back):
                return

    def _add(self, counts: dict[_HourlyKey, int], room: int, key: _HourlyKey, count: int) -> None:
        if key not in counts and len(counts) >= room:
            key = _unknown(key)
        counts[key] = counts.get(key, 0) + count


async def remove_old(registry: Registry, *, now: float) -> int:
    """Remove the oldest hour's counters once they are no longer kept.

    Returns the number of rows. Repeated calls remove all older ones. Source: D28
    """
    return await registry.hourly_counts.remove_oldest(before=_hour(now) - KEPT_DAYS * DAY)


class DeprecatedUsage:
    """Uses of deprecated generations, by client and habit."""

    def __init__(self) -> None:
        self._counts: dict[_UseKey, tuple[int, int]] = {}

    def note(self, client_id: str, generation_name: str, habits: Iterable[str], now: float) -> None:
        """Count one sign-in of a client, and each of its habits once.

        When full, only entries that exist already are counted on.
        """
        for habit in {SIGN_IN, *habits}:
            self._add((client_id, generation_name, habit), (1, int(now)))

    async def flush(self, registry: Registry) -> None:
        """Write the counters."""

        async def write(part: dict[_UseKey, tuple[int, int]]) -> None:
            await registry.usage.add(
                [
                    UseCount(client_id=client_id, generation=generation, habit=habit, count=count, last_at=last_at)
                    for (client_id, generation, habit), (count, last_at) in part.items()
                ]
            )

        await _write_in_parts(self._counts, write, self._add)

    def _add(self, key: _UseKey, counted: tuple[int, int]) -> None:
        if key not in self._counts and len(self._counts) >= ENTRIES:
            return
        count, last_at = self._counts.get(key, (0, 0))
        self._counts[key] = (count + counted[0], max(last_at, counted[1]))


class RecentRefusals:
    """The latest refusals of each client."""

    def __init__(self) -> None:
        self._rings: dict[bool, dict[str, _Ring]] = {False: {}, True: {}}

    def note(self, refusal: ClientRefusal) -> None:
        """Note a refusal; the latest ones of each client are kept.

        Claimed ones have a place of their own, so that strangers push nothing out, and what cannot be an identifier is
        not noted. Source: D28
        """
        if refusal.claimed and (len(refusal.client_id) > _LONGEST_CLAIM or not is_storable(refusal.client_id)):
            return
        rings = self._rings[refusal.claimed]
        if refusal.client_id not in rings and len(rings) >= CLIENTS:
            return
        rings.setdefault(refusal.client_id, deque(maxlen=REFUSALS_KEPT[refusal.claimed])).append(refusal)

    async def flush(self, registry: Registry) -> None:
        """Write the refusals. Source: D28"""
        for claimed, rings in self._rings.items():
            for client_id in list(rings):
                ring = rings.pop(client_id)
                try:
                    await registry.client_refusals.add(list(ring), kept=REFUSALS_KEPT[claimed])
                except BaseException as error:
                    rings[client_id] = deque((*ring, *rings.pop(client_id, ())), maxlen=ring.maxlen)
                    if isinstance(error, StoreUnavailable):
                        return
                    raise
                # On SQLite nothing else waits, and there may be a thousand clients.
                await asyncio.sleep(0)


async def list_refusals(registry: Registry, client_id: str, *, actor: Actor) -> list[ClientRefusal]:
    """The recent refusals of a client, the latest first.

    Those of the last seconds may be missing. Raises access.Forbidden, StoreUnavailable. Source: D28
    """
    authorise(actor, "read", Object(kind="client"))
    return await registry.client_refusals.list_for_client(client_id)


async def _write_in_parts(
    counts: dict[K, V], write: Callable[[dict[K, V]], Awaitable[None]], take_back: Callable[[K, V], None]
) -> bool:
    """Write counters; False if the store cannot be reached.

    What is not written is taken back.
    """
    keys = list(counts)
    for start in range(0, len(keys), _WRITTEN_AT_ONCE):
        part = {key: counts.pop(key) for key in keys[start : start + _WRITTEN_AT_ONCE] if key in counts}
        try:
            await write(part)
        except BaseException as error:
            for key, count in part.items():
                take_back(key, count)
            if isinstance(error, StoreUnavailable):
                return False
            raise
        # On SQLite nothing else waits.
        await asyncio.sleep(0)
    return True


def _hour(now: float) -> int:
    return int(now) // HOUR * HOUR


def _unknown(key: _HourlyKey) -> _HourlyKey:
    hour, _, reason = key
    return hour, UNKNOWN_CLIENT, reason
