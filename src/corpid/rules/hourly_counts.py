"""Series of hourly counters: by hour, and by local day."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.rules.limits import HOUR

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from zoneinfo import ZoneInfo


KEPT_DAYS: Final = 91
"""how long counters are kept: 90 days, and the hours of the day that is not over"""
SHOWN_DAYS: Final = 90
SHOWN_HOURS: Final = 7 * 24


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """Completed sign-ins and refusals of an hour or a day."""

    begins_at: int
    """epoch seconds"""
    sign_ins: int
    refusals: int


def beginning(now: float, zone: ZoneInfo) -> int:
    """The moment from which on both series need counters. Source: D23"""
    return _days(now, zone)[0] // HOUR * HOUR


def by_hour(counts: Iterable[Point], *, now: float) -> tuple[Point, ...]:
    """The last 7 days, an hour each; hours without counts are zero. Source: D28"""
    last = int(now) // HOUR * HOUR
    return tuple(_sums(counts, [last - back * HOUR for back in range(SHOWN_HOURS - 1, -1, -1)], last + HOUR))


def by_day(counts: Iterable[Point], *, now: float, zone: ZoneInfo) -> tuple[Point, ...]:
    """The last 90 days of a time zone, today included.

    An hour belongs to the day in which it begins. Source: D23
    """
    beginnings = _days(now, zone)
    return tuple(_sums(counts, beginnings, int(now) // HOUR * HOUR + HOUR))


def _days(now: float, zone: ZoneInfo) -> list[int]:
    """The first moment of each of the last 90 days.

    Two a year have 23 or 25 hours.
    """
    today = datetime.fromtimestamp(now, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    return [int((today - timedelta(days=back)).timestamp()) for back in range(SHOWN_DAYS - 1, -1, -1)]


def _sums(counts: Iterable[Point], beginnings: Sequence[int], end: int) -> Iterator[Point]:
    """A point for each beginning; counts are in order of their hours."""
    waiting = iter(counts)
    one = next(waiting, None)
    for begins_at, ends_at in zip(beginnings, (*beginnings[1:], end), strict=True):
        sign_ins = refusals = 0
        while one is not None and one.begins_at < ends_at:
            if one.begins_at >= begins_at:
                sign_ins, refusals = sign_ins + one.sign_ins, refusals + one.refusals
            one = next(waiting, None)
        yield Point(begins_at=begins_at, sign_ins=sign_ins, refusals=refusals)


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
