"""Series of hourly counters (D23)."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from corpid.rules.hourly_counts import SHOWN_DAYS, SHOWN_HOURS, Point, beginning, by_day, by_hour
from corpid.rules.limits import HOUR

NOW = datetime(2026, 11, 5, 9, 30, tzinfo=UTC).timestamp()
THIS_HOUR = int(NOW) // HOUR * HOUR


def point(hours_ago: int, sign_ins: int = 1, refusals: int = 0) -> Point:
    return Point(begins_at=THIS_HOUR - hours_ago * HOUR, sign_ins=sign_ins, refusals=refusals)


def test_a_series_has_every_hour_of_7_days_and_ends_with_the_present_one() -> None:
    series = by_hour([point(500), point(167), point(2, 3, 1), point(0)], now=NOW)
    assert len(series) == SHOWN_HOURS
    assert (series[0], series[-3], series[-2], series[-1]) == (point(167), point(2, 3, 1), point(1, 0), point(0))
    assert sum(each.sign_ins for each in series) == 5


@pytest.mark.parametrize("zone", ["UTC", "Asia/Singapore", "Asia/Kolkata", "America/New_York", "Pacific/Auckland"])
def test_a_series_has_every_day_of_90_also_across_a_change_of_the_clocks(zone: str) -> None:
    """D23: every counted hour is in exactly one day."""
    here = ZoneInfo(zone)
    first = beginning(NOW, here)
    hours = [point(ago) for ago in range((THIS_HOUR - first) // HOUR - 1, -1, -1)]
    series = by_day(hours, now=NOW, zone=here)
    assert len(series) == SHOWN_DAYS
    assert sum(each.sign_ins for each in series) == len(hours)
    assert {each.sign_ins for each in series[1:-1]} <= {23, 24, 25}
    days = [datetime.fromtimestamp(each.begins_at, here) for each in series]
    assert {day.hour for day in days} == {0}
    assert days[-1].date() == datetime.fromtimestamp(NOW, here).date()
