"""Waiting changes of e-mail addresses, on both databases (D61)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.rules.authentication.records import EmailChange, Session
from corpid.rules.directory.records import Change, SignOut, User
from tests.adapters.opened import EVENT, NOW
from tests.adapters.stored_records import LIM, TAN, remove, write

if TYPE_CHECKING:
    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

OLD, NEW = "tan@old.example", "tan@new.example"
WITH_ADDRESS = replace(TAN, email=OLD, enabled=True)
HERE = Session(
    session_id="here", user_id=TAN.user_id, browser_id="b1", auth_time=1, amr=("pwd", "otp"), level=2,
    expires_at=int(NOW) + 10**9, purpose="account",
)  # fmt: skip
ELSEWHERE = replace(HERE, session_id="elsewhere", browser_id="b2")
CHANGE = EmailChange(
    user_id=TAN.user_id, link_hash="h1", old_email=OLD, new_email=NEW, proved_at=int(NOW), effective_at=int(NOW) + 9
)
BY_THE_PERSON = replace(EVENT, actor=f"user:{TAN.user_id}")


async def fill(stores: SqlStores) -> None:
    await write(stores, WITH_ADDRESS, LIM)
    for each in (HERE, ELSEWHERE):
        await stores.registry.sessions.put(each)


async def begin(stores: SqlStores, change: EmailChange = CHANGE, *, session_id: str = HERE.session_id) -> bool:
    return await stores.registry.email_changes.begin(change, BY_THE_PERSON, session_id=session_id)


async def address(stores: SqlStores) -> str:
    user = await stores.registry.directory.user(TAN.user_id)
    assert user is not None
    return user.email


async def audited(stores: SqlStores) -> int:
    return len(await stores.registry.audit.entries(limit=1000))


async def test_a_change_is_stored_once_and_ends_the_other_sessions(place: Place) -> None:
    """D61: of several at once, one is written."""
    async with place.opened() as stores:
        await fill(stores)
        before = await audited(stores)
        others = [replace(CHANGE, link_hash=f"h{number}") for number in range(1, 5)]
        assert sorted(await asyncio.gather(*(begin(stores, each) for each in others))) == [False, False, False, True]
        stored = await stores.registry.email_changes.find(TAN.user_id)
        assert stored in others
        assert await stores.registry.email_changes.by_link(stored.link_hash) == stored
        assert await stores.registry.email_changes.find(LIM.user_id) is None
        assert [each.session_id for each in await stores.registry.sessions.list_for_user(TAN.user_id, now=NOW)] == [
            "here"
        ]
        assert await audited(stores) == before + 1
        assert await address(stores) == OLD


async def test_without_the_session_the_address_or_the_person_nothing_is_stored(place: Place) -> None:
    """D50: they ended or changed since the page was sent."""
    async with place.opened() as stores:
        await fill(stores)
        before = await audited(stores)
        assert not await begin(stores, session_id="ended")
        assert not await begin(stores, replace(CHANGE, old_email="other@old.example"))
        assert not await begin(stores, replace(CHANGE, user_id="nobody"))
        await write(stores, replace(WITH_ADDRESS, enabled=False))
        assert not await begin(stores)
        assert await audited(stores) == before + 1
        assert await stores.registry.email_changes.find(TAN.user_id) is None


async def test_of_undoing_and_finishing_at_once_one_has_effect(place: Place) -> None:
    """docs/architecture.md, "One-time use": two people press, and the background task of two servers runs."""
    async with place.opened() as stores:
        await fill(stores)
        assert await begin(stores)
        before, changes = await audited(stores), stores.registry.email_changes
        undone, again, finished, twice = await asyncio.gather(
            changes.undo(CHANGE, EVENT),
            changes.undo(CHANGE, EVENT),
            changes.finish(CHANGE, BY_THE_PERSON),
            changes.finish(CHANGE, BY_THE_PERSON),
        )
        assert (undone + again) + [finished, twice].count("changed") == 1
        assert await address(stores) == (NEW if "changed" in {finished, twice} else OLD)
        assert await audited(stores) == before + 1
        assert await changes.due(now=NOW + 100, limit=9) == []


async def test_a_change_takes_effect_as_the_persons_own(place: Place) -> None:
    """D65: a file leaves it alone; nothing else of the person changes."""
    async with place.opened() as stores:
        await fill(stores)
        assert await begin(stores)
        changes = stores.registry.email_changes
        assert await changes.due(now=NOW, limit=9) == []
        [due] = await changes.due(now=NOW + 9, limit=9)
        assert due == CHANGE
        assert await changes.finish(due, BY_THE_PERSON) == "changed"
        found = (await stores.registry.directory.sourced(User, [TAN.key]))[TAN.key]
        assert found.record == replace(WITH_ADDRESS, email=NEW)
        assert found.sources.source_of("email") == f"user:{TAN.user_id}"
        assert await changes.finish(due, BY_THE_PERSON) == "gone"


async def test_undoing_ends_every_session_but_one_that_is_named(place: Place) -> None:
    """D61."""
    async with place.opened() as stores:
        await fill(stores)
        assert await begin(stores)
        await stores.registry.sessions.put(ELSEWHERE)
        changes, sessions = stores.registry.email_changes, stores.registry.sessions
        assert not await changes.undo(CHANGE, EVENT, but_session="ended")
        assert await changes.undo(CHANGE, EVENT, but_session="here")
        assert [each.session_id for each in await sessions.list_for_user(TAN.user_id, now=NOW)] == ["here"]
        assert await begin(stores)
        assert await changes.undo(CHANGE, EVENT)
        assert await sessions.list_for_user(TAN.user_id, now=NOW) == []


@pytest.mark.parametrize("how", ["signed out", "disabled", "other address", "removed"])
async def test_a_change_ends_with_what_it_rests_on(place: Place, how: str) -> None:
    """D50, D65: also if it is only seen when the change would take effect."""
    async with place.opened() as stores:
        await fill(stores)
        assert await begin(stores)
        match how:
            case "signed out":
                await stores.registry.directory.write([SignOut(TAN.user_id)])
            case "disabled":
                await write(stores, replace(WITH_ADDRESS, enabled=False))
            case "other address":
                await write(stores, replace(WITH_ADDRESS, email="payroll@new.example"))
            case "removed":
                await remove(stores, WITH_ADDRESS)
        changes = stores.registry.email_changes
        assert await changes.find(TAN.user_id) is None
        assert await changes.by_link("h1") is None
        assert not await changes.undo(CHANGE, EVENT)
        dropped = "dropped" if how in {"disabled", "other address"} else "gone"
        assert await changes.finish(CHANGE, BY_THE_PERSON) == dropped
        if how != "removed":
            assert await address(stores) in {OLD, "payroll@new.example"}


async def test_a_change_does_not_come_back_with_the_address_that_it_rested_on(place: Place) -> None:
    """D65: an operator who writes another address has stopped it, also if the former one is written later."""
    async with place.opened() as stores:
        await fill(stores)
        assert await begin(stores)
        directory, changes = stores.registry.directory, stores.registry.email_changes
        await directory.write([Change(None, replace(WITH_ADDRESS, name="Tan A."), EVENT)])
        assert await changes.find(TAN.user_id) is not None
        for email in ("payroll@new.example", OLD):
            await directory.write([Change(None, replace(WITH_ADDRESS, email=email), EVENT)])
        assert await changes.find(TAN.user_id) is None
        assert await changes.finish(CHANGE, BY_THE_PERSON) == "gone"
        assert await address(stores) == OLD
