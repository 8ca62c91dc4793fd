"""Series of hourly counters: by hour, and by local day."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, get_args

import msgspec

from corpid.rules.fields import KEY
from corpid.rules.limits import HOUR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from zoneinfo import ZoneInfo

Period: TypeAlias = Literal["today", "7d", "30d", "90d"]
"""today and 7 days by hour, the longer ones by day"""
PERIODS: Final[tuple[Period, ...]] = get_args(Period)
BY_HOUR: Final[frozenset[Period]] = frozenset({"today", "7d"})
KEPT_DAYS: Final = 91
"""how long counters are kept: 90 days, and the hours of the day that is not over"""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """Completed sign-ins and refusals of an hour or a day."""

    begins_at: int
    """epoch seconds"""
    sign_ins: int
    refusals: int


def list_beginnings(period: Period, *, now: float, zone: ZoneInfo) -> list[int]:
    """The first moments of the hours or local days of a period.

    The last one is the present hour or day. Two days a year have 23 or 25 hours. Source: D23
    """
    hour = int(now) // HOUR * HOUR
    if period == "7d":
        return list(range(hour - (7 * 24 - 1) * HOUR, hour + 1, HOUR))
    midnight = datetime.fromtimestamp(now, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "today":
        first = -(-int(midnight.timestamp()) // HOUR) * HOUR  # where a zone is half an hour off, the next full one
        return list(range(min(first, hour), hour + 1, HOUR))
    days = int(period.removesuffix("d"))
    return [int((midnight - timedelta(days=back)).timestamp()) for back in range(days - 1, -1, -1)]


def series(counts: Iterable[Point], beginnings: Sequence[int]) -> tuple[Point, ...]:
    """A point for each beginning; counts are in order of their hours.

    An hour belongs to the part in which it begins. Parts without counts are zero. Source: D23, D28
    """
    waiting = iter(counts)
    one = next(waiting, None)
    found = []
    for begins_at, ends_at in zip(beginnings, (*beginnings[1:], float("inf")), strict=True):
        sign_ins = refusals = 0
        while one is not None and one.begins_at < ends_at:
            if one.begins_at >= begins_at:
                sign_ins, refusals = sign_ins + one.sign_ins, refusals + one.refusals
            one = next(waiting, None)
        found.append(Point(begins_at=begins_at, sign_ins=sign_ins, refusals=refusals))
    return tuple(found)


UNKNOWN_CLIENT: Final = ""
"""the client of refusals that name none, or one that is not registered"""


COMPLETED: Final = ""
"""the reason of what was not refused: a completed sign-in"""


class HourlyCount(msgspec.Struct, frozen=True, kw_only=True):
    """A count of one hour, client and reason."""

    hour: Annotated[int, KEY]
    """its beginning, epoch seconds"""
    client_id: Annotated[str, KEY]
    reason: Annotated[str, KEY]
    """its code in the catalogue of refusals, or COMPLETED"""
    count: int


class CountOfReason(msgspec.Struct, frozen=True, kw_only=True):
    """A client's count of one reason, over several hours."""

    client_id: str
    reason: str
    count: int


class LatestUse(msgspec.Struct, frozen=True):
    """The latest use of a client, and its keys.

    Counts are those of 24 hours.
    """

    last_sign_in: int | None
    """epoch seconds; None: the audit has none"""
    sign_ins: int
    refusals: int
    deprecated_at: int | None
    """when it last did something that is deprecated; None: never"""
    jwks: str | None
    """its key set, as it was fetched; None: it was not"""
