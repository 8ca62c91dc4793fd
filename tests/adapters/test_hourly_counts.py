"""Hourly counters of sign-ins and refusals (D28)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from corpid.rules.directory.records import Change
from corpid.rules.hourly_counts import CountOfReason, HourlyCount, Point
from corpid.rules.limits import HOUR
from corpid.rules.oauth.records import Client
from tests.adapters.opened import EVENT, race

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

RP = Client(client_id="rp", name="RP", redirect_uris=("https://rp.example/cb",), jwks='{"keys":[]}')

EVER = 2**60

COUNTER = """
from corpid.rules.hourly_counts import HourlyCount
async def main():
    stores = await opened()
    go()
    for number in range(20):
        await stores.registry.hourly_counts.add([
            HourlyCount(hour=3600, client_id=client_id, reason="", count=1)
            for client_id in ("rp", f"a{number}", f"z{sys.argv[2]}")
        ])
    await stores.close()
asyncio.run(main())
"""
"""those that do not exist lie before and after one that does"""


def count(hour: int = 1, client_id: str = "rp", reason: str = "", number: int = 1) -> HourlyCount:
    return HourlyCount(hour=hour * HOUR, client_id=client_id, reason=reason, count=number)


def point(hour: int, sign_ins: int, refusals: int) -> Point:
    return Point(begins_at=hour * HOUR, sign_ins=sign_ins, refusals=refusals)


@asynccontextmanager
async def registered(place: Place) -> AsyncIterator[SqlStores]:
    async with place.opened() as stores:
        await stores.registry.directory.write([Change(None, RP)], EVENT)
        yield stores


async def test_counts_add_up_by_hour_client_and_reason(place: Place) -> None:
    async with registered(place) as stores:
        counts = stores.registry.hourly_counts
        assert await counts.totals(since=0, until=EVER) == []
        await counts.add([count(1, number=2), count(1, reason="x"), count(3, reason="y")])
        await counts.add([count(1, number=3), count(3, reason="x", number=4)])
        assert await counts.totals(since=0, until=EVER) == [point(1, 5, 1), point(3, 0, 5)]
        assert await counts.totals(since=2 * HOUR, until=4 * HOUR) == [point(3, 0, 5)]
        assert await counts.totals(since=0, until=EVER, client_id="other") == []
        assert await counts.totals(since=0, until=EVER, client_id="rp") == [point(1, 5, 1), point(3, 0, 5)]
        assert await counts.by_client_and_reason(since=0, until=EVER, client_id="other") == []
        assert await counts.by_client_and_reason(since=0, until=EVER) == [
            CountOfReason(client_id="rp", reason="", count=5),
            CountOfReason(client_id="rp", reason="x", count=5),
            CountOfReason(client_id="rp", reason="y", count=1),
        ]


async def test_clients_that_are_not_registered_share_one_row(place: Place) -> None:
    """Strangers can name any number of them."""
    async with registered(place) as stores:
        counts = stores.registry.hourly_counts
        await counts.add([count(client_id=f"nobody{number}", reason="x") for number in range(30)])
        await counts.add([count(client_id="", reason="x"), count(reason="x")])
        assert await counts.by_client_and_reason(since=0, until=EVER) == [
            CountOfReason(client_id="", reason="x", count=31),
            CountOfReason(client_id="rp", reason="x", count=1),
        ]


async def test_what_was_counted_of_a_client_that_is_removed_stays_in_the_totals(place: Place) -> None:
    async with registered(place) as stores:
        await stores.registry.hourly_counts.add([count()])
        await stores.registry.directory.write([Change(RP, None)], EVENT)
        assert await stores.registry.hourly_counts.totals(since=0, until=EVER) == [point(1, 1, 0)]


async def test_only_hours_that_are_too_old_are_removed_one_at_a_time(place: Place) -> None:
    async with registered(place) as stores:
        counts = stores.registry.hourly_counts
        assert await counts.remove_oldest(before=HOUR) == 0
        await counts.add([count(1), count(1, reason="x"), count(2), count(3)])
        assert await counts.remove_oldest(before=3 * HOUR) == 2
        assert await counts.remove_oldest(before=3 * HOUR) == 1
        assert await counts.remove_oldest(before=3 * HOUR) == 0
        assert await counts.totals(since=0, until=EVER) == [point(3, 1, 0)]


@pytest.mark.full
async def test_counts_of_several_processes_add_up_and_none_waits_for_another_for_ever(place: Place) -> None:
    async with registered(place) as _stores:
        pass
    race(place.address, COUNTER, processes=3)

    async with registered(place) as stores:
        assert await stores.registry.hourly_counts.by_client_and_reason(since=0, until=EVER) == [
            CountOfReason(client_id="", reason="", count=120),
            CountOfReason(client_id="rp", reason="", count=60),
        ]
