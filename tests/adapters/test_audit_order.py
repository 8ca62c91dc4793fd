"""Whoever reads the audit table on from a number misses nothing, however writers overlap (SECURITY.md)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from corpid.rules.failures import StoreUnavailable
from tests.adapters.opened import EVENT, NOW

if TYPE_CHECKING:
    from corpid.rules.audit import AuditEntry
    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

WRITERS = 16
EACH = 20


async def holding(stores: SqlStores, written: asyncio.Event, end: asyncio.Event) -> None:
    """A transaction that has taken a number, and goes on with something else."""
    async with stores.database.transaction():
        await stores.registry.audit.write(EVENT, now=NOW)
        written.set()
        await end.wait()


async def test_an_entry_that_becomes_visible_late_is_waited_for(postgresql: Place) -> None:
    async with postgresql.opened() as stores:
        written, end = asyncio.Event(), asyncio.Event()
        slow = asyncio.create_task(holding(stores, written, end))
        await written.wait()
        await stores.registry.audit.write(EVENT, now=NOW)
        reading = asyncio.create_task(stores.registry.audit.entries())
        await asyncio.wait([reading], timeout=0.2)
        assert not reading.done(), "the second entry was shown without the first"
        await stores.registry.audit.write(EVENT, now=NOW)
        end.set()
        await slow
        assert [entry.number for entry in await reading] == [1, 2], "what came after the question waits for the next"
        assert [entry.number for entry in await stores.registry.audit.entries(after=2)] == [3]


async def test_a_writer_that_does_not_end_is_told_of(postgresql: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corpid.stores.sql.postgresql._LOCK_ATTEMPTS", 3)

    async with postgresql.opened() as stores:
        written, end = asyncio.Event(), asyncio.Event()
        slow = asyncio.create_task(holding(stores, written, end))
        await written.wait()
        await stores.registry.audit.write(EVENT, now=NOW)
        with pytest.raises(StoreUnavailable, match="writing to the audit table for more than five seconds"):
            await stores.registry.audit.entries()
        end.set()
        await slow
        assert len(await stores.registry.audit.entries()) == 2


async def test_a_reader_who_follows_many_writers_sees_every_entry_once(place: Place) -> None:
    async def write(stores: SqlStores, name: str) -> None:
        for number in range(EACH):
            async with stores.database.transaction():
                await stores.registry.audit.write(msgspec.structs.replace(EVENT, object=f"{name}-{number}"), now=NOW)
                await asyncio.sleep(0.001 * (number % 3))

    async with place.opened() as stores:
        writing = asyncio.gather(*(write(stores, str(name)) for name in range(WRITERS)))
        seen: list[AuditEntry] = []
        while True:
            done = writing.done()
            found = await stores.registry.audit.entries(after=seen[-1].number if seen else 0, limit=7)
            seen += found
            await asyncio.sleep(0)
            if done and not found:
                break
        await writing
        assert len({entry.object for entry in seen}) == len(seen) == WRITERS * EACH
