"""Who wrote a record: kept by the store, from the event of each change (D65, docs/decisions/0018)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.rules.audit import AuditEvent
from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.records import (
    Change,
    ChangedMeanwhile,
    ChangeRequest,
    Entity,
    Precondition,
    RolesUnder,
    Sources,
    StoreChange,
    User,
)
from corpid.rules.directory.sources import ABSENT, UNKNOWN
from corpid.stores.sql.changes import CHANGES_AT_ONCE
from tests.adapters.stored_records import ACME, BOOKS, CLIENT, EVERYTHING, LIM, MEMBER, TAN, write
from tests.adapters.test_third_parties import ACCEPTED, EVERYBODY, GIVEN, there

if TYPE_CHECKING:
    from corpid.rules.fields import KeyedRecord
    from corpid.rules.oauth.records import Client
    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

FILE, COMMAND, API = "file:hr.yaml", "command:root@node1", "client:hr"
RECORDS = (*EVERYTHING, CLIENT)


def by(actor: str) -> AuditEvent:
    return AuditEvent(actor=actor, action="test.change")


async def put(stores: SqlStores, actor: str, *records: KeyedRecord | Client) -> None:
    await stores.registry.directory.write([Change(None, record, by(actor)) for record in records])


async def sources(stores: SqlStores, record: KeyedRecord | Client) -> Sources:
    key = getattr(record, "key", ("rp",))
    found = await stores.registry.directory.sourced(type(record), [key, ("nobody",) * len(key)])
    assert found[key].record == record
    assert [each.sources async for each in stores.registry.directory.scan_sourced(type(record)) if each.record == record] == [found[key].sources]  # fmt: skip
    return found[key].sources


async def test_each_kind_of_record_keeps_who_wrote_it_last(place: Place) -> None:
    """Without that a caller has to remember it; factors have their own rule (D44), and no file writes a request."""
    async with place.opened() as stores:
        await put(stores, FILE, *RECORDS)
        for record in RECORDS:
            expected = UNKNOWN if isinstance(record, Credentials | ChangeRequest) else Sources(record=FILE)
            assert await sources(stores, record) == expected
        await put(stores, COMMAND, *RECORDS)
        await write(stores, *RECORDS)
        assert await sources(stores, BOOKS) == Sources(record=FILE), "what keeps its value keeps its source"
        other = replace(BOOKS, name="Books Two")
        await put(stores, COMMAND, other)
        assert await sources(stores, other) == Sources(record=COMMAND)
        await put(stores, "system", BOOKS)
        assert await sources(stores, BOOKS) == Sources(record=COMMAND)
        await stores.registry.directory.write([Change(None, BOOKS, by(FILE), taken={"*": ""})])
        assert await sources(stores, BOOKS) == Sources(record=FILE)


async def test_of_a_person_each_member_has_its_own_source(place: Place) -> None:
    async with place.opened() as stores:
        directory = stores.registry.directory
        await put(stores, FILE, LIM)
        await directory.set_language("u2", "ms", by("user:u2"))
        spoken = replace(LIM, language="ms")
        assert await sources(stores, spoken) == Sources(record=FILE, members={"language": "user:u2"})
        locked = replace(spoken, enabled=False)
        await put(stores, "operator:u1", locked)
        members = {"language": "user:u2", "enabled": "operator:u1"}
        assert await sources(stores, locked) == Sources(record=FILE, members=members)
        await directory.write([Change(None, locked, by(FILE), taken={"enabled": ""})])
        assert await sources(stores, locked) == Sources(record=FILE, members={"language": "user:u2"})


@pytest.mark.parametrize("record", [BOOKS, LIM], ids=["entity", "user"])
async def test_what_others_changed_since_it_was_read_is_neither_replaced_nor_removed(
    place: Place, record: Entity | User
) -> None:
    """D65: a file decides on what it read; in the transaction of the change it is looked at again.

    Also if the same hand changed it, whose source is the same.
    """
    async with place.opened() as stores:
        await put(stores, FILE, record)
        seen, other, wanted = await sources(stores, record), replace(record, name="Two"), replace(record, name="Three")
        await put(stores, API, other)
        late: list[StoreChange] = [
            Change(record, wanted, by(FILE), seen=seen), Change(None, wanted, by(FILE), seen=ABSENT), Change(record, None, by(FILE), seen=seen),
        ]  # fmt: skip
        now = await sources(stores, other)
        late += [Change(record, wanted, by(FILE), seen=now), Change(record, None, by(FILE), seen=now)]  # changed again
        for change in late:
            with pytest.raises(ChangedMeanwhile):
                await stores.registry.directory.write([change])
        await stores.registry.directory.write([Change(other, wanted, by(FILE), seen=now)])
        await stores.registry.directory.write([Change(wanted, None, by(FILE), seen=await sources(stores, wanted))])
        await stores.registry.directory.write([Change(wanted, None, by(FILE), seen=now)])


async def test_a_record_to_which_somebody_was_added_meanwhile_is_not_removed(place: Place) -> None:
    """D65: what a nightly pruning did not read it does not take along."""
    async with place.opened() as stores:
        await put(stores, FILE, TAN, ACME)
        seen = await sources(stores, TAN)
        await put(stores, API, MEMBER)
        for record in (TAN, ACME):
            with pytest.raises(ChangedMeanwhile):
                await stores.registry.directory.write([Change(record, None, by(FILE), seen=seen)])
        await stores.registry.directory.write([Change(TAN, None, by(COMMAND))])


async def test_a_record_that_has_to_be_new_keeps_who_wrote_it(place: Place) -> None:
    """D55, D65: an approved change inserts what nobody was to have added meanwhile."""
    async with place.opened() as stores:
        new: list[StoreChange] = [Precondition(Entity, BOOKS.key, None), Change(None, BOOKS, by(API))]
        await stores.registry.directory.write(new)
        assert await sources(stores, BOOKS) == Sources(record=API)
        with pytest.raises(ChangedMeanwhile):
            await stores.registry.directory.write(new)


async def test_a_file_ends_no_role_that_was_given_since_it_was_read_and_other_doors_end_it(place: Place) -> None:
    """D56 with D65: the plan named what ends with the grant; a decision of one side ends whatever is under it."""
    async with place.opened() as stores:
        directory = stores.registry.directory
        await put(stores, FILE, *EVERYBODY, ACCEPTED)
        seen = await sources(stores, ACCEPTED)
        await put(stores, API, GIVEN)
        with pytest.raises(ChangedMeanwhile):
            await directory.write(
                [Change(ACCEPTED, None, by(FILE), seen=seen), RolesUnder(ACCEPTED, by(FILE), planned=True)]
            )
        assert await there(stores) == ([ACCEPTED], [GIVEN])
        await directory.write([Change(ACCEPTED, None, by(COMMAND)), RolesUnder(ACCEPTED, by(COMMAND))])
        assert await there(stores) == ([], [])


async def test_a_grant_that_another_one_replaces_ends_no_role_however_many_changes_there_are(place: Place) -> None:
    """D56, D57: the other one may be written in a later transaction."""
    many = [
        replace(BOOKS, entity_id=f"M{number}", registration_number=str(number)) for number in range(CHANGES_AT_ONCE)
    ]
    other = replace(ACCEPTED, ref="two")

    async with place.opened() as stores:
        await put(stores, FILE, *EVERYBODY, ACCEPTED, GIVEN)
        changes: list[StoreChange] = [Change(None, each, by(FILE)) for each in many]
        removal = Change(ACCEPTED, None, by(FILE), seen=await sources(stores, ACCEPTED))
        ends = RolesUnder(ACCEPTED, by(FILE), planned=True)
        await stores.registry.directory.write([*changes, Change(None, other, by(FILE)), removal, ends])
        assert await there(stores) == ([other], [GIVEN])


async def test_what_the_version_before_writes_comes_from_nobody_known(place: Place) -> None:
    """docs/upgrades.md: its servers go on writing meanwhile, and know no sources."""
    columns = "entity_id, type, registration_number, country, name, status, enabled, search_text"
    place.sql(f"INSERT INTO entities ({columns}) VALUES ('E2', 'UEN', '2', 'SG', 'books Pte', '', true, '')")

    async with place.opened() as stores:
        assert await sources(stores, BOOKS) == UNKNOWN
