"""Grants of third parties: offered, accepted and ended by two sides, whatever they do at once (D56)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.flows.directory import grants
from corpid.flows.directory.actors import load_administrator
from corpid.flows.directory.grants import GrantFilter
from corpid.flows.directory.write import write_changes as write_as
from corpid.rules.audit import AuditQuery
from corpid.rules.directory.access import Actor, CommandLine, EntityAdministrator, Forbidden
from corpid.rules.directory.records import (
    Change,
    ChangedMeanwhile,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
)
from tests.adapters.stored_records import BOOKS, write
from tests.adapters.test_acting_administrators import FIRM, NOW, taken
from tests.adapters.test_administrators import LIM_OWNS, PEOPLE, RINA_OWNS, WAITS_SECONDS
from tests.world.provider import CheapPasswords

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from corpid.rules.fields import KeyedRecord
    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

OPERATOR = CommandLine(by="lee@node1", reason="Ticket 4711")
SHARED = Service(service_id="s", name="Shared", roles=("Maker",), third_parties=True)
ACCEPTED = ThirdPartyGrant(client_entity_id="E1", entity_id="E2", service_id="s", end_date="2030-12-31")
OFFERED = replace(ACCEPTED, state="offered")
GIVEN = ThirdPartyAssignment(
    user_id="u2", entity_id="E2", client_entity_id="E1", service_id="s", role="Maker", end_date="2030-06-30"
)
SIDES = LIM_OWNS, replace(RINA_OWNS, entity_id="E2")
"""Lim owns the client entity, Rina the third party, of which Lim is a member"""
EVERYBODY: tuple[KeyedRecord, ...] = (*PEOPLE, FIRM, BOOKS, SHARED, *SIDES)
GRANT = GrantFilter(client_entity="E1", third_party="E2", service="s")


async def both(stores: SqlStores) -> tuple[EntityAdministrator, EntityAdministrator]:
    """The client entity's owner and the third party's."""
    made = [
        await load_administrator(stores.registry, user_id, entity_id, auth_time=NOW, now=NOW)
        for user_id, entity_id in (("u2", "E1"), ("u3", "E2"))
    ]
    return made[0], made[1]


def becoming(was: ThirdPartyGrant | None, becomes: ThirdPartyGrant) -> Change:
    return Change(was, becomes)


def role(row: ThirdPartyAssignment = GIVEN) -> Change:
    return Change(None, row)


async def effective(stores: SqlStores) -> list[ThirdPartyGrant]:
    """What a request reads of Lim's roles for the client entity."""
    rows = await stores.registry.directory.third_party_rows("u2", "E2", ["s"])
    return [grant for row in rows for grant in row.grants]


async def there(stores: SqlStores) -> tuple[list[ThirdPartyGrant], list[ThirdPartyAssignment]]:
    directory = stores.registry.directory
    return (
        [grant async for grant in directory.scan(ThirdPartyGrant)],
        [row async for row in directory.scan(ThirdPartyAssignment)],
    )


async def history(stores: SqlStores, entity_id: str) -> list[tuple[str, str]]:
    """The actor and action of each change of grants and roles that an entity reads, the latest first."""
    found = await stores.registry.audit.latest(AuditQuery(entity_id=entity_id), limit=50)
    return [(entry.actor, entry.action) for entry in found if entry.action.startswith(("grant.", "third_party"))]


async def outcome(work: Awaitable[object]) -> bool:
    """Whether a change was made; one that came too late is not."""
    try:
        await work
    except (ChangedMeanwhile, Forbidden):
        return False
    return True


async def test_a_grant_gives_something_from_acceptance_until_it_is_ended_and_both_histories_show_it(
    place: Place,
) -> None:
    async with place.opened() as stores:
        await write(stores, *EVERYBODY)
        client, third_party = await both(stores)
        await write_as(stores.registry, client, [becoming(None, OFFERED)])
        with pytest.raises(Forbidden) as refused:
            await write_as(stores.registry, third_party, [role()])
        assert refused.value.reason == "no grant accepted by your entity covers this"
        with pytest.raises(Forbidden):
            await write_as(stores.registry, client, [becoming(OFFERED, ACCEPTED)])
        await write_as(stores.registry, third_party, [becoming(OFFERED, ACCEPTED)])
        await write_as(stores.registry, third_party, [role()])
        assert await effective(stores) == [ACCEPTED]
        await write_as(stores.registry, third_party, [taken(ACCEPTED)])
        assert await there(stores) == ([], [])
        steps = [
            ("user:u3", "third_party_assignment.remove"),
            ("user:u3", "grant.end"),
            ("user:u3", "third_party_assignment.add"),
            ("user:u3", "grant.accept"),
            ("user:u2", "grant.offer"),
        ]
        assert [await history(stores, entity_id) for entity_id in ("E1", "E2")] == [steps, steps]


async def test_wider_terms_rest_until_they_are_accepted_and_narrower_ones_do_not(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, ACCEPTED, GIVEN)
        client, third_party = await both(stores)
        narrower = replace(ACCEPTED, end_date="2030-01-31")
        await write_as(stores.registry, client, [becoming(ACCEPTED, narrower)])
        assert await effective(stores) == [narrower]
        with pytest.raises(Forbidden):
            await write_as(stores.registry, client, [becoming(narrower, ACCEPTED)])
        await write_as(stores.registry, client, [becoming(narrower, OFFERED)])
        assert await effective(stores) == []
        assert await there(stores) == ([OFFERED], [GIVEN])
        await write_as(stores.registry, third_party, [becoming(OFFERED, ACCEPTED)])
        assert await effective(stores) == [ACCEPTED]


async def test_an_offer_is_declined_by_the_one_side_and_withdrawn_by_the_other(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, OFFERED)
        client, third_party = await both(stores)
        await write_as(stores.registry, third_party, [taken(OFFERED)])
        await write(stores, OFFERED)
        await write_as(stores.registry, client, [taken(OFFERED)])
        assert await there(stores) == ([], [])
        assert [action for _, action in await history(stores, "E2")] == ["grant.withdraw", "grant.decline"]


async def test_roles_under_another_accepted_grant_stay(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, ACCEPTED, replace(ACCEPTED, ref="two"), GIVEN)
        await grants.decide_grant(stores.registry, replace(GRANT, ref=""), "end", actor=OPERATOR)
        assert await there(stores) == ([replace(ACCEPTED, ref="two")], [GIVEN])
        await grants.decide_grant(stores.registry, GRANT, "end", actor=OPERATOR)
        assert await there(stores) == ([], [])


async def test_terms_that_were_changed_meanwhile_are_not_accepted(place: Place) -> None:
    """Whoever accepts has seen what they accept."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, OFFERED)
        _, third_party = await both(stores)
        await write(stores, replace(OFFERED, end_date="9999-12-31"))
        with pytest.raises(ChangedMeanwhile):
            await write_as(stores.registry, third_party, [becoming(OFFERED, ACCEPTED)])


@pytest.mark.parametrize("was", [OFFERED, ACCEPTED], ids=["accepted and withdrawn", "narrowed and ended"])
async def test_of_two_decisions_at_once_one_is_made(place: Place, was: ThirdPartyGrant) -> None:
    """One outcome, and both histories tell it."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, was, GIVEN)
        client, third_party = await both(stores)
        actors: tuple[Actor, Actor] = (third_party, client) if was is OFFERED else (client, third_party)
        becomes = ACCEPTED if was is OFFERED else replace(ACCEPTED, end_date="2029-12-31")
        made = await asyncio.gather(
            outcome(write_as(stores.registry, actors[0], [becoming(was, becomes)])),
            outcome(write_as(stores.registry, actors[1], [taken(was)])),
        )
        assert sorted(made) == [False, True]
        assert await there(stores) == (([becomes], [GIVEN]) if made[0] else ([], []))
        told = [action for _, action in await history(stores, "E1") if action.startswith("grant.")]
        assert len(told) == 1
        assert await history(stores, "E1") == await history(stores, "E2")


async def test_a_role_that_is_given_while_its_grant_ends_ends_with_it(postgresql: Place) -> None:
    """The end waits for whoever gives a role under the grant, and sees it."""
    async with postgresql.opened() as stores:
        await write(stores, *EVERYBODY, ACCEPTED)
        client, third_party = await both(stores)
        async with stores.transient.batch(NOW):
            await write_as(stores.registry, third_party, [role()])
            late = asyncio.create_task(write_as(stores.registry, client, [taken(ACCEPTED)]))
            done, _ = await asyncio.wait({late}, timeout=WAITS_SECONDS)
            assert not done
        await late
        assert await there(stores) == ([], [])


async def test_no_role_is_given_under_a_grant_that_is_ending(postgresql: Place) -> None:
    async with postgresql.opened() as stores:
        await write(stores, *EVERYBODY, ACCEPTED)
        client, third_party = await both(stores)
        async with stores.transient.batch(NOW):
            await write_as(stores.registry, client, [taken(ACCEPTED)])
            late = asyncio.create_task(outcome(write_as(stores.registry, third_party, [role()])))
            done, _ = await asyncio.wait({late}, timeout=WAITS_SECONDS)
            assert not done
        assert not await late
        assert await there(stores) == ([], [])


async def test_a_grant_with_more_roles_than_a_transaction_usually_has_ends_as_a_whole(place: Place) -> None:
    async with place.opened() as stores:
        rows = [replace(GIVEN, ref=str(number)) for number in range(250)]
        await write(stores, *EVERYBODY, ACCEPTED, *rows)
        await grants.decide_grant(stores.registry, GRANT, "end", actor=OPERATOR)
        assert await there(stores) == ([], [])
        membership = Membership(user_id="u2", entity_id="E2")
        assert await stores.registry.directory.read(Membership, [membership.key])


async def test_the_operations_speak_for_the_side_of_whoever_acts(place: Place) -> None:
    """D56: the same functions for doors of entities as for commands."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY)
        client, third_party = await both(stores)
        registry, passwords, terms = stores.registry, CheapPasswords(threads=1), {"end_date": "2030-12-31"}
        with pytest.raises(Forbidden):
            await grants.offer_grant(registry, passwords, GRANT, terms, actor=third_party)
        with pytest.raises(Forbidden):
            await grants.offer_grant(registry, passwords, GRANT, terms, actor=client, accepted=True)
        await grants.offer_grant(registry, passwords, GRANT, terms, actor=client)
        with pytest.raises(Forbidden):
            await grants.decide_grant(registry, GRANT, "accept", actor=client)
        await grants.decide_grant(registry, GRANT, "accept", actor=third_party)
        assert await there(stores) == ([ACCEPTED], [])
        await grants.decide_grant(registry, GRANT, "end", actor=third_party)
        await write(stores, OFFERED)
        await grants.decide_grant(registry, GRANT, "end", actor=third_party)
        told = [action for _, action in await history(stores, "E1")]
        passwords.close()
        assert told == ["grant.decline", "grant.end", "grant.accept", "grant.offer"]
