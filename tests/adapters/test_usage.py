"""Counters of what clients use of a generation that ends (Spec "Generations")."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from corpid.rules.directory.records import Change
from corpid.rules.failures import StoreUnavailable
from corpid.rules.oauth.deprecated_usage import UseCount
from corpid.rules.oauth.records import Client
from tests.adapters.databases import Place
from tests.adapters.opened import EVENT, program, race

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from corpid.stores.sql.open import SqlStores

RP = Client(client_id="rp", name="RP", redirect_uris=("https://rp.example/cb",), jwks='{"keys":[]}')
OTHER = Client(client_id="other", name="Other", redirect_uris=("https://o.example/cb",), jwks='{"keys":[]}')

COUNTER = """
from corpid.rules.oauth.deprecated_usage import UseCount
async def main():
    stores = await opened()
    go()
    for _ in range(20):
        await stores.registry.usage.add([
            UseCount(client_id="rp", generation="legacy", habit=habit, count=1, last_at=int(sys.argv[2]))
            for habit in ("", "without_state")
        ])
    await stores.close()
asyncio.run(main())
"""

HOLDER = """
import sqlite3
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
go()
connection.rollback()
"""


def use(client_id: str = "rp", habit: str = "", count: int = 1, last_at: int = 100) -> UseCount:
    return UseCount(client_id=client_id, generation="legacy", habit=habit, count=count, last_at=last_at)


@asynccontextmanager
async def registered(place: Place) -> AsyncIterator[SqlStores]:
    async with place.opened() as stores:
        await stores.registry.directory.write([Change(None, RP), Change(None, OTHER)], EVENT)
        yield stores


async def test_counts_are_added_and_the_latest_moment_stays(place: Place) -> None:
    async with registered(place) as stores:
        usage = stores.registry.usage
        assert await usage.list_all() == []
        await usage.add([use(count=2, last_at=200), use(habit="without_state")])
        await usage.add([use(count=3, last_at=150), use(habit="without_state", last_at=300), use(client_id="other")])
        assert await usage.list_all() == [
            use(client_id="other"),
            use(count=5, last_at=200),
            use(habit="without_state", count=2, last_at=300),
        ]


async def test_what_a_client_that_is_gone_counted_is_dropped_and_the_rest_is_kept(place: Place) -> None:
    async with registered(place) as stores:
        await stores.registry.usage.add([use(client_id="nobody"), use()])
        assert await stores.registry.usage.list_all() == [use()]


async def test_a_client_that_is_removed_takes_its_counters_along(place: Place) -> None:
    async with registered(place) as stores:
        await stores.registry.usage.add([use(), use(client_id="other")])
        await stores.registry.directory.write([Change(RP, None)], EVENT)
        assert await stores.registry.usage.list_all() == [use(client_id="other")]


async def test_a_client_that_is_changed_keeps_its_counters(place: Place) -> None:
    async with registered(place) as stores:
        await stores.registry.usage.add([use()])
        await stores.registry.directory.write([Change(None, RP)], EVENT)
        assert await stores.registry.usage.list_all() == [use()]


@pytest.mark.full
async def test_counters_of_several_processes_add_up(place: Place) -> None:
    async with registered(place) as _stores:
        pass
    race(place.address, COUNTER, processes=3)

    async with registered(place) as stores:
        assert await stores.registry.usage.list_all() == [
            use(count=60, last_at=2),
            use(habit="without_state", count=60, last_at=2),
        ]


@pytest.mark.full
async def test_counts_are_written_all_or_not_at_all(tmp_path: Path) -> None:
    async with registered(Place(tmp_path / "corpid.db")) as stores:
        holder = program(tmp_path / "corpid.db", HOLDER)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        with pytest.raises(StoreUnavailable):
            await stores.registry.usage.add([use(), use(habit="without_state")])
        holder.communicate("go\n", timeout=60)
        assert await stores.registry.usage.list_all() == []
