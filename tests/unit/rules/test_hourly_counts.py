"""Series of hourly counters (D23)."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from corpid.rules.hourly_counts import Point, list_beginnings, series
from corpid.rules.limits import HOUR

NOW = datetime(2026, 11, 5, 9, 30, tzinfo=UTC).timestamp()
THIS_HOUR = int(NOW) // HOUR * HOUR


def point(hours_ago: int, sign_ins: int = 1, refusals: int = 0) -> Point:
    return Point(begins_at=THIS_HOUR - hours_ago * HOUR, sign_ins=sign_ins, refusals=refusals)


def test_a_series_has_every_hour_of_7_days_and_ends_with_the_present_one() -> None:
    hours = list_beginnings("7d", now=NOW, zone=ZoneInfo("UTC"))
    found = series([point(500), point(167), point(2, 3, 1), point(0)], hours)
    assert len(found) == 168
    assert (found[0], found[-3], found[-2], found[-1]) == (point(167), point(2, 3, 1), point(1, 0), point(0))
    assert sum(each.sign_ins for each in found) == 5


@pytest.mark.parametrize(
    ("zone", "hours"), [("UTC", 10), ("Asia/Singapore", 18), ("Asia/Kolkata", 15), ("Pacific/Kiritimati", 24)]
)
def test_today_has_the_full_hours_since_the_local_midnight(zone: str, hours: int) -> None:
    """D23."""
    found = list_beginnings("today", now=NOW, zone=ZoneInfo(zone))
    assert (len(found), found[-1]) == (hours, THIS_HOUR)
    assert {datetime.fromtimestamp(each, ZoneInfo(zone)).date() for each in found} == {
        datetime.fromtimestamp(NOW, ZoneInfo(zone)).date()
    }


def test_today_is_never_without_an_hour() -> None:
    """Where a zone is half an hour off, the first half hour of a day belongs to no full one of it."""
    midnight = datetime(2026, 11, 5, tzinfo=ZoneInfo("Asia/Kolkata")).timestamp()
    assert len(list_beginnings("today", now=midnight + 60, zone=ZoneInfo("Asia/Kolkata"))) == 1


@pytest.mark.parametrize("zone", ["UTC", "Asia/Singapore", "Asia/Kolkata", "America/New_York", "Pacific/Auckland"])
def test_a_series_has_every_day_of_90_also_across_a_change_of_the_clocks(zone: str) -> None:
    """D23: every counted hour is in exactly one day."""
    here = ZoneInfo(zone)
    days = list_beginnings("90d", now=NOW, zone=here)
    first = days[0] // HOUR * HOUR
    hours = [point(ago) for ago in range((THIS_HOUR - first) // HOUR - 1, -1, -1)]
    found = series(hours, days)
    assert len(found) == 90
    assert sum(each.sign_ins for each in found) == len(hours)
    assert {each.sign_ins for each in found[1:-1]} <= {23, 24, 25}
    shown = [datetime.fromtimestamp(each.begins_at, here) for each in found]
    assert {day.hour for day in shown} == {0}
    assert shown[-1].date() == datetime.fromtimestamp(NOW, here).date()
