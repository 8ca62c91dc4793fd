"""Records of any kind, written and read (stores.sql.Directory)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from corpid.rules.directory.records import Change, Entity, User
from corpid.stores.sql.mappers import CHANGE_REQUESTS
from tests.adapters.opened import EVENT, NOW
from tests.adapters.stored_records import (
    ACME,
    ADMINISTERS,
    ASSIGNED,
    BOOKS,
    EVERYTHING,
    FACTORS,
    FOR_BOOKS,
    GRANTED,
    LEVY,
    LIM,
    MEMBER,
    OPERATES,
    REQUEST,
    TAN,
    TRADE,
    everything,
    remove,
    write,
)

if TYPE_CHECKING:
    from corpid.rules.fields import KeyedRecord
    from tests.adapters.databases import Place


async def test_every_record_comes_back_as_it_was_written_in_any_order(place: Place) -> None:
    """With every field away from its default, so that a field without its column would show."""
    async with place.opened() as stores:
        directory = stores.registry.directory
        await write(stores, *reversed(EVERYTHING))
        for record in EVERYTHING:
            assert await directory.read(type(record), [record.key, ("nobody",) * len(record.key)]) == {
                record.key: record
            }
        assert sorted(await everything(stores), key=repr) == sorted(EVERYTHING, key=repr)


async def test_writing_a_record_again_replaces_it_and_keeps_what_refers_to_it(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, *EVERYTHING)
        changed = msgspec.structs.replace(TAN, user_name="tan.w", name="Tan W M", enabled=True)
        await write(stores, changed, msgspec.structs.replace(ACME, enabled=True))
        assert await stores.registry.directory.user("u1") == changed
        assert await stores.registry.directory.user_by_name("tan.w") == changed
        assert await stores.registry.directory.user_by_name("Tan.WeiMing") is None
        assert await stores.registry.directory.assignments("u1", "E1", ["s1"]) == [ASSIGNED]
        assert await stores.registry.factors.credentials("u1") == FACTORS


@pytest.mark.parametrize(
    ("removed", "left"),
    [
        (TAN, [LIM, OPERATES, ACME, BOOKS, TRADE, LEVY, GRANTED, REQUEST]),
        (LIM, [TAN, ACME, BOOKS, TRADE, LEVY, MEMBER, ADMINISTERS, ASSIGNED, GRANTED, FOR_BOOKS, FACTORS, REQUEST]),
        (ACME, [TAN, LIM, OPERATES, BOOKS, TRADE, LEVY, FACTORS]),
        (BOOKS, [TAN, LIM, OPERATES, ACME, TRADE, LEVY, MEMBER, ADMINISTERS, ASSIGNED, FACTORS, REQUEST]),
        (TRADE, [TAN, LIM, OPERATES, ACME, BOOKS, LEVY, MEMBER, ADMINISTERS, FACTORS, REQUEST]),
        (MEMBER, [TAN, LIM, OPERATES, ACME, BOOKS, TRADE, LEVY, GRANTED, FACTORS, REQUEST]),
        (ADMINISTERS, [TAN, LIM, OPERATES, ACME, BOOKS, TRADE, LEVY, MEMBER, ASSIGNED, GRANTED, FOR_BOOKS, FACTORS, REQUEST]),
        (GRANTED, [TAN, LIM, OPERATES, ACME, BOOKS, TRADE, LEVY, MEMBER, ADMINISTERS, ASSIGNED, FOR_BOOKS, FACTORS, REQUEST]),
    ],
    ids=[
        "user", "operator", "client entity's third party", "client entity", "service", "membership", "level", "grant",
    ],
)  # fmt: skip
async def test_what_a_removed_record_carried_goes_with_it(
    place: Place, removed: KeyedRecord, left: list[KeyedRecord]
) -> None:
    """Roles and levels must not come back to life when a membership is made again (D53)."""
    async with place.opened() as stores:
        await write(stores, *EVERYTHING)
        await remove(stores, removed)
        assert sorted(await everything(stores), key=repr) == sorted(left, key=repr)


async def test_removals_come_before_what_is_written(place: Place) -> None:
    """A name that becomes free can be given away in the same change."""
    async with place.opened() as stores:
        await write(stores, LIM)
        heir = User(user_id="u3", user_name="LIM", name="Another Lim")
        await stores.registry.directory.write([Change(None, heir), Change(LIM, None)], EVENT)
        assert await stores.registry.directory.user_by_name("lim") == heir


async def test_many_changes_are_all_written_with_one_event_at_the_end(place: Place) -> None:
    async with place.opened() as stores:
        firms = [msgspec.structs.replace(BOOKS, entity_id=f"F{number:04}") for number in range(1201)]
        await write(stores, *firms)
        assert [firm async for firm in stores.registry.directory.scan(Entity)] == firms
        assert len(await stores.registry.audit.entries()) == 1


@pytest.mark.full
async def test_others_write_between_the_parts_of_a_large_change(place: Place) -> None:
    """While `corpid apply` writes a large file, requests keep flowing."""
    async with place.opened() as stores:
        firms = [msgspec.structs.replace(BOOKS, entity_id=f"F{number:04}") for number in range(2000)]
        writing = asyncio.create_task(write(stores, *firms))
        answered = 0
        while not writing.done():
            async with stores.transient.batch(NOW) as batch:
                answered += await batch.add("jti", answered.to_bytes(32), 60)
            await asyncio.sleep(0)
        assert answered >= 5


async def test_a_change_without_records_still_leaves_its_event(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores)
        assert len(await stores.registry.audit.entries()) == 1


def test_a_request_keeps_its_changes_as_every_version_reads_them() -> None:
    """D55: requests that wait at an upgrade are still decided."""
    changes = (Change(None, ASSIGNED), Change(ACME, BOOKS), Change(MEMBER, None))
    row = CHANGE_REQUESTS.encode(msgspec.structs.replace(REQUEST, changes=changes))
    assert [(each["verb"], each["kind"], each["key"]) for each in msgspec.json.decode(row["changes"])] == [
        ("add", "assignment", [*ASSIGNED.key]), ("change", "entity", ["E2"]), ("remove", "membership", [*MEMBER.key]),
    ]  # fmt: skip
    assert msgspec.json.decode(row["changes"])[1]["was"]["name"] == ACME.name
    kept = CHANGE_REQUESTS.decode([row[name] for name in CHANGE_REQUESTS.columns])
    assert kept.changes == changes
