"""The day of a deployment, in its time zone (D23)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from corpid.flows.request_context import Calendar

ZONES = ("UTC", "Asia/Singapore", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Havana", "Pacific/Apia")


@pytest.mark.full
@pytest.mark.parametrize("zone", ZONES)
def test_a_day_begins_at_its_midnight_also_where_clocks_change_then(zone: str) -> None:
    """Havana changes its clocks at midnight, Lord Howe by half an hour."""
    calendar, at = Calendar(ZoneInfo(zone)), datetime(2026, 1, 1, tzinfo=UTC)
    before = date.min
    for _ in range(365 * 24 * 4):
        at += timedelta(minutes=15)
        for moment in (at - timedelta(microseconds=1), at):
            expected = moment.astimezone(ZoneInfo(zone)).date()
            assert calendar.day(moment.timestamp()) == expected
            assert calendar.today(moment.timestamp()) == expected.isoformat()
            assert expected >= before
            before = expected


def test_a_clock_that_is_set_back_leads_to_the_day_before() -> None:
    calendar = Calendar(ZoneInfo("Asia/Singapore"))
    midnight = datetime(2026, 3, 1, tzinfo=ZoneInfo("Asia/Singapore")).timestamp()
    assert calendar.today(midnight) == "2026-03-01"
    assert calendar.today(midnight - 1) == "2026-02-28"
    assert calendar.today(midnight) == "2026-03-01"
