"""Each change's own audit event, in the transaction of the change (stores.sql.Directory.write, D57)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.rules.audit import AuditEntry, AuditEvent
from corpid.rules.authentication.records import Session
from corpid.rules.directory.records import Change, Entity, Membership, MissingReference, SignOut, StoreChange
from corpid.stores.sql.changes import CHANGES_AT_ONCE
from tests.adapters.opened import EVENT, NOW
from tests.adapters.stored_records import BOOKS, LIM, TAN, write

if TYPE_CHECKING:
    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

ORPHAN = Membership(user_id="nobody", entity_id="F0000")


def noted(*key: str) -> AuditEvent:
    return AuditEvent(actor="operator", action="test.change", object="/".join(key))


def firms(count: int) -> list[Entity]:
    return [replace(BOOKS, entity_id=f"F{number:04}") for number in range(count)]


async def audited(stores: SqlStores) -> list[AuditEntry]:
    return await stores.registry.audit.entries(limit=10_000)


async def test_every_change_leaves_its_own_event_and_then_that_of_all_of_them(place: Place) -> None:
    """D57, in the order of writing: removals first."""
    async with place.opened() as stores:
        await write(stores, LIM)
        changes: list[StoreChange] = [
            Change(None, TAN, noted("u1")),
            Change(LIM, None, noted("u2")),
            Change(None, BOOKS, noted("books")),
        ]
        await stores.registry.directory.write(changes, EVENT)
        assert [entry.object for entry in await audited(stores)][1:] == ["u2", "books", "u1", EVENT.object]


async def test_a_write_that_fails_half_way_leaves_the_events_of_what_it_wrote_and_no_other(place: Place) -> None:
    """Spec 7, D57: each part of a large file is one transaction; the last is undone, and its events with it."""
    async with place.opened() as stores:
        changes: list[StoreChange] = [
            Change(None, firm, noted(firm.entity_id)) for firm in firms(2 * CHANGES_AT_ONCE + 1)
        ]
        with pytest.raises(MissingReference):
            await stores.registry.directory.write([*changes, Change(None, ORPHAN, noted("orphan"))], EVENT)
        written = [firm.entity_id async for firm in stores.registry.directory.scan(Entity)]
        assert len(written) == 2 * CHANGES_AT_ONCE
        assert [entry.object for entry in await audited(stores)] == written


async def test_a_person_is_signed_out_with_their_own_change_also_if_a_later_part_fails(place: Place) -> None:
    """D50: a person who is disabled by a large file has no session left, whatever becomes of the rest of it."""
    async with place.opened() as stores:
        await write(stores, TAN, *firms(CHANGES_AT_ONCE))
        now = int(await stores.transient.engine_time() or NOW)
        session = Session(
            session_id="s",
            user_id=TAN.user_id,
            browser_id="b",
            auth_time=now,
            amr=("pwd",),
            level=2,
            expires_at=now + 900,
        )
        await stores.registry.sessions.put(session)
        members = [
            Change(None, Membership(user_id=TAN.user_id, entity_id=firm.entity_id)) for firm in firms(CHANGES_AT_ONCE)
        ]
        off = replace(TAN, enabled=False)
        with pytest.raises(MissingReference):
            await stores.registry.directory.write(
                [SignOut(TAN.user_id), *members, Change(None, off), Change(None, ORPHAN)], EVENT
            )
        assert await stores.registry.directory.user(TAN.user_id) == off
        assert await stores.registry.sessions.get("s", now=now) is None
