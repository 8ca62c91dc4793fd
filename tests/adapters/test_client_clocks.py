"""The largest skew of each client's clock, on every engine (D67, docs/decisions/0026)."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from corpid.rules.data_loss import ClientClock
from corpid.rules.directory.records import Change
from corpid.rules.oauth.records import Client
from tests.adapters.opened import EVENT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

RP = Client(client_id="rp", name="RP", redirect_uris=("https://rp.example/cb",), jwks='{"keys":[]}')


@asynccontextmanager
async def registered(place: Place) -> AsyncIterator[SqlStores]:
    async with place.opened() as stores:
        await stores.registry.directory.write([Change(None, RP)], EVENT)
        yield stores


async def test_the_largest_lead_of_a_period_stays_and_that_of_the_period_before(place: Place) -> None:
    """D67: so that of the last 30 days is always among them; nodes may be in two periods at once."""
    async with registered(place) as stores:
        clocks = stores.registry.client_clocks

        async def noted(skew: int, period: int) -> ClientClock | None:
            await clocks.note("rp", skew=skew, period=period, now=100.0 + period)
            return await clocks.find("rp")

        def clock(period: int, skew: int, lead_before: int) -> ClientClock:
            return ClientClock(since=107.0, period=period, lead=skew, lead_before=lead_before)

        assert await clocks.find("rp") is None
        assert await noted(-5, 7) == clock(7, -5, -5)
        assert await noted(3, 7) == clock(7, 3, -5)
        assert await noted(2, 7) == clock(7, 3, -5)
        assert await noted(1, 8) == clock(8, 1, 3)
        assert await noted(4, 7) == clock(8, 4, 3), "a node that is still in the period before"
        assert await noted(-60, 11) == clock(11, -60, -60), "nothing was seen in between"


async def test_of_two_nodes_that_note_at_once_the_larger_lead_stays(place: Place) -> None:
    async with registered(place) as stores, place.opened() as other:
        both = (stores.registry.client_clocks, other.registry.client_clocks)
        await asyncio.gather(
            *(both[skew % 2].note("rp", skew=skew, period=7, now=1.0) for skew in (4, 1, 9, 0, 31, 2, 7, 30))
        )
        for clocks in both:
            found = await clocks.find("rp")
            assert found is not None
            assert found.lead == 31


async def test_a_client_takes_its_clock_along_when_it_is_removed(place: Place) -> None:
    async with registered(place) as stores:
        clocks = stores.registry.client_clocks
        await clocks.note("rp", skew=1, period=7, now=1.0)
        await clocks.note("nobody", skew=1, period=7, now=1.0)
        assert await clocks.find("nobody") is None
        await stores.registry.directory.write([Change(RP, None)], EVENT)
        assert await clocks.find("rp") is None


async def test_since_when_leads_are_recorded_is_said_by_who_says_it_last(place: Place) -> None:
    async with registered(place) as stores:
        clocks = stores.registry.client_clocks
        assert await clocks.recorded_since() is None
        for now in (5.25, 7.5):
            await clocks.begin(now=now)
            assert await clocks.recorded_since() == now


async def test_a_larger_lead_is_noted_apart(place: Place) -> None:
    """It concerns clients without a record; the records of all others still count."""
    async with registered(place) as stores:
        clocks = stores.registry.client_clocks
        assert await clocks.larger_at() is None
        await clocks.begin(now=5.25)
        await clocks.note_larger(now=7.5)
        assert await clocks.larger_at() == 7.5
        assert await clocks.recorded_since() == 5.25
