"""Administrators who change something: their right is read again where it is written (D50, D53, D54)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.flows.directory.actors import load_administrator, load_operator
from corpid.flows.directory.write import add_facts, authorise_changes, record_changes, write_changes
from corpid.rules.directory.access import (
    Actor,
    ApiClient,
    CommandLine,
    EntityAdministrator,
    Forbidden,
    Object,
    ProvisioningToken,
)
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Change,
    ChangedMeanwhile,
    LastOwnerRemoved,
    Membership,
    Operator,
    Service,
    ThirdPartyGrant,
)
from corpid.rules.directory.values import ParameterDefinition
from tests.adapters.stored_records import ACME, BOOKS, LIM, remove, write
from tests.adapters.test_administrators import LIM_OWNS, PEOPLE, RINA, RINA_HELPS, RINA_OWNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.rules.fields import KeyedRecord
    from corpid.stores.sql.open import SqlStores
    from corpid.stores.sql.registry import Registry
    from tests.adapters.databases import Place

NOW = 1_800_000_000.0
FIRM = replace(ACME, enabled=True, approvals="none")
PLAIN = Service(service_id="plain", name="Plain", roles=("Maker",))
YEARLY = Service(service_id="yearly", name="Yearly", parameters=(ParameterDefinition(name="Year"),))
EVERYBODY: tuple[KeyedRecord, ...] = (*PEOPLE, FIRM, PLAIN, YEARLY)


def given(record: Assignment | Administrator | Membership | ThirdPartyGrant) -> Change:
    return Change(None, record)


async def write_as(registry: Registry, actor: Actor, changes: Sequence[Change]) -> None:
    """Changes whose records are known to fit."""
    await write_changes(registry, actor, changes, planned=True)


def taken(record: Administrator | Membership | ThirdPartyGrant) -> Change:
    return Change(record, None)


def role(user_id: str, service_id: str = "plain", entity_id: str = "E1") -> Change:
    return given(Assignment(user_id=user_id, entity_id=entity_id, service_id=service_id, role="Maker"))


async def acting(stores: SqlStores, user_id: str, entity_id: str = "E1", *, since: float = 60) -> EntityAdministrator:
    return await load_administrator(stores.registry, user_id, entity_id, auth_time=NOW - since, now=NOW)


async def roles(stores: SqlStores, user_id: str, entity_id: str = "E1") -> int:
    return len(await stores.registry.directory.assignments(user_id, entity_id, ["plain", "yearly"]))


async def test_an_owner_gives_a_role_and_the_history_says_who(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, LIM_OWNS)
        await write_as(stores.registry, await acting(stores, "u2"), [role("u3")])
        assert await roles(stores, "u3") == 1
        *_, entry = await stores.registry.audit.entries()
        assert (entry.actor, entry.action, entry.entity_id) == ("user:u2", "assignment.add", "E1")
        assert "self" not in entry.detail


async def test_the_only_administrators_own_roles_are_marked(place: Place) -> None:
    """D54: `self`, and only as long as there is nobody else."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, LIM_OWNS)
        owner = await acting(stores, "u2")
        await write_as(stores.registry, owner, [role("u2")])
        *_, entry = await stores.registry.audit.entries()
        assert entry.detail["self"] == "true"
        await write(stores, Administrator(user_id="u3", entity_id="E1", level="sub_administrator"))
        for actor in (owner, await acting(stores, "u2")):
            with pytest.raises(Forbidden):
                await write_as(stores.registry, actor, [role("u2", "yearly")])
        assert await roles(stores, "u2") == 1


@pytest.mark.parametrize(
    "off",
    [replace(LIM, enabled=False), ACME, Membership(user_id="u2", entity_id="E1", enabled=False)],
    ids=["person", "entity", "membership"],
)
async def test_whoever_cannot_act_for_the_entity_does_not_administer_it(place: Place, off: KeyedRecord) -> None:
    """D50."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, LIM_OWNS)
        actor = await acting(stores, "u2")
        await write(stores, off)
        with pytest.raises(Forbidden) as refused:
            await acting(stores, "u2")
        assert refused.value.reason == "you no longer administer this entity"
        with pytest.raises(Forbidden):
            await write_as(stores.registry, actor, [role("u3")])
        assert await roles(stores, "u3") == 0


async def test_a_membership_that_ended_a_second_ago_gives_nothing(place: Place) -> None:
    """Before the decision, and between the decision and the write."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, LIM_OWNS)
        actor, change = await acting(stores, "u2"), role("u3")
        thing = Object(kind="assignment", entity_id="E1", service_id="plain", user_id="u3")
        _, guards = await add_facts(stores.registry, actor, [change], [thing])
        await stores.registry.directory.write([Change(Membership(user_id="u2", entity_id="E1"), None)])
        with pytest.raises(ChangedMeanwhile):
            await stores.registry.directory.write([Change(None, change.after), *guards])
        with pytest.raises(Forbidden):
            await write_as(stores.registry, actor, [change])
        assert await roles(stores, "u3") == 0


async def test_a_level_that_was_lowered_since_is_not_used_any_more(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, LIM_OWNS)
        owner = await acting(stores, "u2")
        await write(stores, Administrator(user_id="u2", entity_id="E1", level="administrator"))
        with pytest.raises(Forbidden):
            await write_as(stores.registry, owner, [given(RINA_OWNS)])
        assert await stores.registry.directory.administered("u3") == []


async def test_the_right_at_one_entity_is_none_at_another(place: Place) -> None:
    """D54: Rina owns E1, and helps at E2, which she chose."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, RINA_OWNS, RINA_HELPS)
        at_e2 = await acting(stores, "u3", "E2")
        for change in (given(LIM_OWNS), role("u2"), given(replace(LIM_OWNS, entity_id="E2"))):
            with pytest.raises(Forbidden):
                await write_as(stores.registry, at_e2, [change])
        await write_as(stores.registry, at_e2, [role("u2", entity_id="E2")])
        with pytest.raises(Forbidden):
            await acting(stores, "u2", "E1")


async def test_one_change_that_is_refused_keeps_the_others_from_being_written(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, RINA_HELPS)
        helper = await acting(stores, "u3", "E2")
        with pytest.raises(Forbidden):
            await write_as(stores.registry, helper, [role("u2", entity_id="E2"), role("u1", entity_id="E2")])
        assert await roles(stores, "u2", "E2") == 0


async def test_an_administrator_does_not_touch_an_owner(place: Place) -> None:
    """D53: the level of the other one is read from the store, and nobody has to say it."""
    async with place.opened() as stores:
        administers = Administrator(user_id="u2", entity_id="E1", level="administrator")
        await write(stores, *EVERYBODY, administers, RINA_OWNS)
        administrator = await acting(stores, "u2")
        for change in (
            taken(RINA_OWNS),
            role("u3"),
            taken(Membership(user_id="u3", entity_id="E1")),
            given(replace(RINA_OWNS, level="sub_administrator")),
        ):
            with pytest.raises(Forbidden):
                await write_as(stores.registry, administrator, [change])
        assert await stores.registry.directory.administered("u3") == [RINA_OWNS]


async def test_an_old_sign_in_changes_nothing(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, LIM_OWNS)
        with pytest.raises(Forbidden) as refused:
            await write_as(stores.registry, await acting(stores, "u2", since=901), [role("u3")])
        assert "sign in again" in refused.value.reason


async def test_of_two_owners_who_remove_each_other_at_once_one_stays(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, LIM_OWNS, RINA_OWNS)
        lim, rina = await acting(stores, "u2"), await acting(stores, "u3")

        async def removed(actor: EntityAdministrator, other: Administrator) -> bool:
            try:
                await write_as(stores.registry, actor, [taken(other)])
            except (Forbidden, ChangedMeanwhile, LastOwnerRemoved):
                return False
            return True

        assert sorted(await asyncio.gather(removed(lim, RINA_OWNS), removed(rina, LIM_OWNS))) == [False, True]
        assert len(await stores.registry.directory.administrators("E1")) == 1


async def test_the_last_owner_goes_by_an_operator_only(place: Place) -> None:
    """D54; a provisioning token ends the membership of every other one (D60)."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, LIM_OWNS, RINA_OWNS)
        token = ProvisioningToken(token_id="t", entity_id="E1")
        await write_as(
            stores.registry, token, [taken(Membership(user_id="u3", entity_id="E1", membership_id="u3 at E1"))]
        )
        with pytest.raises(Forbidden) as refused:
            await write_as(stores.registry, token, [taken(Membership(user_id="u2", entity_id="E1"))])
        assert refused.value.reason == "the last owner must stay: appoint another owner first"
        await write(stores, Operator(user_id="u3", level="operator"))
        operator = await load_operator(stores.registry, "u3", auth_time=NOW, now=NOW)
        await write_as(stores.registry, operator, [taken(LIM_OWNS)])
        await write(stores, LIM_OWNS)
        await write_as(stores.registry, CommandLine(by="lee@node1"), [taken(LIM_OWNS)])
        assert await stores.registry.directory.administrators("E1") == []


@pytest.mark.parametrize("ends", ["removed", "level", "disabled"])
async def test_an_operator_whose_right_ends_meanwhile_changes_nothing(place: Place, ends: str) -> None:
    """D53, D54: looked at when the change is decided on, and again in its transaction."""
    appointed = Operator(user_id="u3", level="operator")

    async with place.opened() as stores:
        await write(stores, *EVERYBODY, LIM_OWNS, RINA_OWNS, appointed)
        registry = stores.registry
        operator = await load_operator(registry, "u3", auth_time=NOW, now=NOW)
        decided = await authorise_changes(registry, operator, [taken(LIM_OWNS)])
        if ends == "removed":
            await remove(stores, appointed)
        else:
            await write(
                stores, replace(appointed, level="support") if ends == "level" else replace(RINA, enabled=False)
            )
        with pytest.raises(ChangedMeanwhile):
            await registry.directory.write([*record_changes(decided), *decided.guards])
        with pytest.raises(Forbidden) as refused:
            await write_as(registry, operator, [taken(LIM_OWNS)])
        assert refused.value.reason == "you no longer operate this deployment"
        if ends != "level":
            with pytest.raises(Forbidden):
                await load_operator(registry, "u3", auth_time=NOW, now=NOW)
        assert len(await registry.directory.administrators("E1")) == 2


@pytest.mark.parametrize("removed", [False, True], ids=["disabled", "removed"])
async def test_an_api_client_disables_no_last_owner_of_any_entity(place: Place, removed: bool) -> None:
    """D54, D59: a person's record has no entity; what they own is read."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, replace(LIM_OWNS, entity_id="E2"), LIM_OWNS, RINA_OWNS)
        client = ApiClient(client_id="c", scopes=frozenset({"directory.write"}))
        becomes = None if removed else replace(LIM, enabled=False)
        change = Change(LIM, becomes)
        with pytest.raises(Forbidden) as refused:
            await write_as(stores.registry, client, [change])
        assert refused.value.reason == "the last owner must stay: appoint another owner first"
        await write(stores, replace(RINA_OWNS, entity_id="E2"))
        await write_as(stores.registry, client, [change])
        assert [each.enabled for each in await stores.registry.directory.administrators("E2")] in (
            [True],
            [False, True],
        )


async def test_provisioning_gives_no_role_that_has_parameters(place: Place) -> None:
    """D60: the service's definition decides, also where the row names none."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY)
        token = ProvisioningToken(token_id="t", entity_id="E1")
        await write_as(stores.registry, token, [role("u3")])
        with pytest.raises(Forbidden):
            await write_as(stores.registry, token, [role("u3", "yearly")])
        assert await roles(stores, "u3") == 1


async def test_a_grant_is_the_client_entitys_to_give_and_either_sides_to_end(place: Place) -> None:
    """D56: the client entity is who lets the other one act."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, BOOKS, LIM_OWNS, replace(RINA_OWNS, entity_id="E2"))
        by_e1 = ThirdPartyGrant(client_entity_id="E1", entity_id="E2", service_id="plain", state="offered")
        client, third_party = await acting(stores, "u2"), await acting(stores, "u3", "E2")
        with pytest.raises(Forbidden):
            await write_as(stores.registry, third_party, [given(by_e1)])
        await write_as(stores.registry, client, [given(by_e1)])
        await write_as(stores.registry, third_party, [taken(by_e1)])


async def test_an_owner_suspends_a_member(place: Place) -> None:
    """D53: somebody without a level, whom nobody else has to remain for."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, LIM_OWNS)
        membership = Membership(user_id=RINA.user_id, entity_id="E1", membership_id="u3 at E1")
        suspended = replace(membership, enabled=False)
        change = Change(membership, suspended)
        await write_as(stores.registry, await acting(stores, "u2"), [change])
        assert await stores.registry.directory.read(Membership, [membership.key]) == {membership.key: suspended}
