"""Levels of people: who administers an entity, who operates the deployment, and who must remain (D53, D54)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from corpid.rules.directory.records import (
    ActingPerson,
    Administrator,
    AppointmentStatus,
    Change,
    ChangedMeanwhile,
    LastOwnerInvariant,
    LastOwnerRemoved,
    Membership,
    Operator,
    Precondition,
    SignOut,
    StoreChange,
    User,
)
from corpid.stores.sql.changes import CHANGES_AT_ONCE
from tests.adapters.opened import EVENT, NOW
from tests.adapters.stored_records import ACME, BOOKS, LIM, TAN, everything, write

if TYPE_CHECKING:
    from corpid.rules.fields import KeyedRecord
    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

RINA = User(user_id="u3", user_name="rina", name="Rina")
MEMBERS = tuple(
    Membership(user_id=user_id, entity_id=entity_id, membership_id=f"{user_id} at {entity_id}")
    for user_id in ("u2", "u3")
    for entity_id in ("E1", "E2")
)
LIM_OWNS = Administrator(user_id="u2", entity_id="E1", level="owner")
RINA_OWNS = Administrator(user_id="u3", entity_id="E1", level="owner")
RINA_HELPS = Administrator(user_id="u3", entity_id="E2", level="sub_administrator", services="all")
LIM_OPERATES = Operator(user_id="u2", level="operator")
RINA_OPERATES = Operator(user_id="u3", level="operator")
PEOPLE: tuple[KeyedRecord, ...] = (TAN, LIM, RINA, ACME, BOOKS, *MEMBERS)
OPERATORS_REMAIN = LastOwnerInvariant()
OWNERS_REMAIN = LastOwnerInvariant("E1")
WAITS_SECONDS = 0.3
"""for what has to wait: it would be done in a few milliseconds"""


async def changed(stores: SqlStores, *changes: StoreChange) -> bool:
    """Whether changes were written; those that would leave nobody, or rest on what has changed, are not."""
    try:
        await stores.registry.directory.write(changes)
    except (LastOwnerRemoved, ChangedMeanwhile):
        return False
    return True


async def test_levels_are_found_by_person_and_by_entity(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, *PEOPLE, LIM_OWNS, RINA_OWNS, RINA_HELPS)
        directory = stores.registry.directory
        assert await directory.administered("u3") == [RINA_OWNS, RINA_HELPS]
        assert await directory.administered("u1") == []
        await write(stores, msgspec.structs.replace(LIM, enabled=False))
        assert await directory.administrators("E1") == [
            AppointmentStatus(record=LIM_OWNS, enabled=False),
            AppointmentStatus(record=RINA_OWNS, enabled=True),
        ]
        await write(stores, Membership(user_id="u3", entity_id="E2", enabled=False))
        assert await directory.administrators("E2") == [AppointmentStatus(record=RINA_HELPS, enabled=False)]
        assert await directory.administrators("nothing") == []


async def test_whoever_acts_for_an_entity_is_found_with_the_level_there(place: Place) -> None:
    """D53: of that entity, and of no other."""
    async with place.opened() as stores:
        await write(stores, *PEOPLE, RINA_OWNS, RINA_HELPS)
        found = [await stores.registry.directory.acting("u3", entity_id) for entity_id in ("E1", "E2")]
        assert [each and each.administrator for each in found] == [RINA_OWNS, RINA_HELPS]
        member = (await stores.registry.directory.read(Membership, [("u2", "E1")]))["u2", "E1"]
        acting = ActingPerson(user=LIM, entity=ACME, membership=member, administrator=None)
        assert await stores.registry.directory.acting("u2", "E1") == acting


async def test_operators_are_found_by_level(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, *PEOPLE, LIM_OPERATES, Operator(user_id="u1", level="operator"))
        await write(stores, Operator(user_id="u3", level="support"))
        assert await stores.registry.directory.operators("operator") == [
            AppointmentStatus(record=Operator(user_id="u1", level="operator"), enabled=False),
            AppointmentStatus(record=LIM_OPERATES, enabled=True),
        ]
        assert await stores.registry.directory.operators("auditor") == []


@pytest.mark.parametrize(
    "change",
    [
        Change(LIM_OPERATES, None),
        Change(None, Operator(user_id="u2", level="support")),
        Change(None, msgspec.structs.replace(LIM, enabled=False)),
        Change(LIM, None),
    ],
    ids=["removed", "demoted", "disabled", "person removed"],
)
async def test_the_last_operator_stays(place: Place, change: StoreChange) -> None:
    """D53: also when another one is there who cannot sign in."""
    async with place.opened() as stores:
        await write(stores, *PEOPLE, LIM_OPERATES, Operator(user_id="u1", level="operator"))
        before = await everything(stores)
        assert not await changed(stores, change, SignOut("u2"), OPERATORS_REMAIN)
        assert await everything(stores) == before
        assert await changed(stores, change, Change(None, RINA_OPERATES), OPERATORS_REMAIN)


@pytest.mark.parametrize(
    "change",
    [
        Change(LIM_OWNS, None),
        Change(None, Administrator(user_id="u2", entity_id="E1", level="administrator")),
        Change(None, Membership(user_id="u2", entity_id="E1", enabled=False)),
        Change(Membership(user_id="u2", entity_id="E1"), None),
    ],
    ids=["removed", "demoted", "suspended", "membership ended"],
)
async def test_the_last_owner_stays(place: Place, change: StoreChange) -> None:
    """D54."""
    async with place.opened() as stores:
        await write(stores, *PEOPLE, LIM_OWNS, RINA_HELPS)
        before = await everything(stores)
        assert not await changed(stores, change, OWNERS_REMAIN)
        assert await everything(stores) == before
        assert await changed(stores, change, Change(None, RINA_OWNS), OWNERS_REMAIN)


async def test_where_nobody_was_before_nobody_need_remain(place: Place) -> None:
    """A deployment begins without operators, and an entity without owners."""
    async with place.opened() as stores:
        await write(stores, *PEOPLE)
        assert await changed(stores, Change(LIM, None), OPERATORS_REMAIN, OWNERS_REMAIN)


async def test_the_last_operator_stays_in_a_change_of_several_transactions(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, *PEOPLE, LIM_OPERATES)
        firms = [Change(None, msgspec.structs.replace(BOOKS, entity_id=f"F{n}")) for n in range(CHANGES_AT_ONCE + 1)]
        assert not await changed(stores, *firms, Change(LIM_OPERATES, None), OPERATORS_REMAIN)
        assert await changed(stores, *firms, Change(LIM_OPERATES, None), Change(None, RINA_OPERATES), OPERATORS_REMAIN)
        assert [each.record for each in await stores.registry.directory.operators("operator")] == [RINA_OPERATES]


@pytest.mark.parametrize("disable", [False, True], ids=["removed", "disabled"])
async def test_of_two_who_take_each_others_level_at_once_one_stays(place: Place, disable: bool) -> None:
    """D53, D54: each sees the other one, and only one of them is still there."""

    async def scenario(stores: SqlStores) -> None:
        await write(stores, *PEOPLE, LIM_OPERATES, RINA_OPERATES, LIM_OWNS, RINA_OWNS)
        away: list[StoreChange] = [Change(LIM_OPERATES, None), Change(RINA_OPERATES, None)]
        if disable:
            away = [Change(None, msgspec.structs.replace(each, enabled=False)) for each in (LIM, RINA)]
        written = await asyncio.gather(*(changed(stores, each, OPERATORS_REMAIN) for each in away))
        assert sorted(written) == [False, True]
        assert sum(each.enabled for each in await stores.registry.directory.operators("operator")) == 1
        if disable:
            return
        written = await asyncio.gather(
            *(changed(stores, Change(each, None), OWNERS_REMAIN) for each in (LIM_OWNS, RINA_OWNS))
        )
        assert sorted(written) == [False, True]
        assert len(await stores.registry.directory.administrators("E1")) == 1

    async with place.opened() as stores:
        await scenario(stores)


WITHOUT = {user.user_id: Change(None, msgspec.structs.replace(user, enabled=False)) for user in (LIM, RINA)}
CROSSING: dict[str, tuple[StoreChange, StoreChange, StoreChange]] = {
    "operators removed": (Change(LIM_OPERATES, None), Change(RINA_OPERATES, None), OPERATORS_REMAIN),
    "operators disabled": (WITHOUT["u2"], WITHOUT["u3"], OPERATORS_REMAIN),
    "owners removed": (Change(LIM_OWNS, None), Change(RINA_OWNS, None), OWNERS_REMAIN),
    "right removed": (
        Change(LIM_OWNS, None), Change(None, RINA_HELPS), Precondition(Administrator, LIM_OWNS.key, LIM_OWNS),
    ),
}  # fmt: skip
"""the change that is not committed yet, the one that comes meanwhile, and what must hold for both"""


@pytest.mark.full
@pytest.mark.parametrize(("first", "second", "condition"), CROSSING.values(), ids=CROSSING)
async def test_a_change_waits_for_one_that_may_take_what_it_rests_on(
    postgresql: Place, first: StoreChange, second: StoreChange, condition: StoreChange
) -> None:
    """D53, D54: neither sees what the other one has not committed, so that one of them has to wait."""
    async with postgresql.opened() as stores:
        await write(stores, *PEOPLE, LIM_OPERATES, RINA_OPERATES, LIM_OWNS, RINA_OWNS)
        async with stores.transient.batch(NOW):
            assert await changed(stores, first, condition)
            late = asyncio.create_task(changed(stores, second, condition))
            done, _ = await asyncio.wait({late}, timeout=WAITS_SECONDS)
            assert not done
        assert not await late


@pytest.mark.parametrize(
    "since",
    [
        Change(LIM_OWNS, None),
        Change(Membership(user_id="u2", entity_id="E1"), None),
        Change(None, Administrator(user_id="u2", entity_id="E1", level="administrator")),
    ],
    ids=["level removed", "membership ended", "demoted"],
)
async def test_nothing_is_written_if_the_right_to_it_has_ended_since(place: Place, since: StoreChange) -> None:
    """D53, D54: level and membership are looked at again in the transaction of the change."""
    async with place.opened() as stores:
        await write(stores, *PEOPLE, LIM_OWNS)
        seen = Precondition(Administrator, LIM_OWNS.key, LIM_OWNS)
        assert await changed(stores, Change(None, RINA_HELPS), seen)
        assert await changed(stores, since)
        assert not await changed(stores, Change(None, RINA_OWNS), seen)
        assert await stores.registry.directory.read(Administrator, [RINA_OWNS.key]) == {}
        assert len(await stores.registry.audit.entries()) == 1


async def test_nothing_is_written_about_somebody_who_got_a_level_since(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, *PEOPLE)
        none = Precondition(Administrator, RINA_OWNS.key, None)
        assert await changed(stores, Change(None, LIM_OWNS), none)
        await write(stores, RINA_OWNS)
        assert not await changed(stores, Change(LIM_OWNS, None), none)


async def test_a_level_needs_a_membership(place: Place) -> None:
    """D53: a new membership starts without the level of an earlier one."""
    async with place.opened() as stores:
        await write(stores, *PEOPLE, LIM_OWNS)
        membership = Membership(user_id="u2", entity_id="E1")
        await stores.registry.directory.write([Change(membership, None)], EVENT)
        await stores.registry.directory.write([Change(None, membership)], EVENT)
        acting = await stores.registry.directory.acting("u2", "E1")
        assert acting is not None
        assert acting.administrator is None
