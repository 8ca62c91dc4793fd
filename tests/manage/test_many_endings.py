"""The end of many memberships by one request names all that ends (D53, D55, D81)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.flows.directory import approvals
from corpid.flows.directory.members import preview_bulk, select_members, write_bulk
from corpid.flows.directory.write import Refused, RequestDetails, write_changes
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Change,
    ChangeRequest,
    Membership,
    MissingReference,
    Service,
    User,
)
from tests.manage.scene import ACME, appoint, in_portal
from tests.manage.test_requests import acme
from tests.manage.test_who_is_meant import owner
from tests.sign_in.world import World, entity

if TYPE_CHECKING:
    from corpid.rules.directory.access import EntityAdministrator


async def asked(made: World, count: int, roles: tuple[str, ...]) -> tuple[ChangeRequest, ...]:
    """So many people with these roles each; Bob asks for the end of their memberships."""
    await acme(made)
    registry = made.provider.registry
    people = [f"p{number:03}" for number in range(count)]
    await made.write(
        entity(ACME, "Acme Pte. Ltd.", approvals="all"),
        Service(service_id="PERMITS", name="Permits", roles=("Maker", "Checker", "Viewer")),
        *(User(user_id=f"id-{each}", user_name=each, name=each) for each in people),
        *(Membership(user_id=f"id-{each}", entity_id=ACME, membership_id=f"m-{each}") for each in people),
        *(
            Assignment(user_id=f"id-{each}", entity_id=ACME, service_id="PERMITS", role=role)
            for each in people
            for role in roles
        ),
    )
    bob = owner(made)
    selected = await select_members(registry, [f"m-{each}" for each in people], actor=bob)
    preview = await preview_bulk(registry, selected, "end", actor=bob, today="2027-01-15")
    done = await write_bulk(registry, preview, actor=bob, asking=RequestDetails("They left", made.clock(), "u"))
    return done.requests


@pytest.mark.parametrize(("count", "roles"), [(20, ("Maker", "Checker")), (60, ("Maker",)), (40, ("Maker", "Checker"))])
async def test_the_end_of_many_memberships_can_be_approved(made: World, count: int, roles: tuple[str, ...]) -> None:
    """D55, D81."""
    registry = made.provider.registry
    for each in await asked(made, count, roles):
        alice = owner(made, "alice")
        await approvals.approve_request(registry, each.request_id, actor=alice, reason="r", now=made.clock())
    members = await registry.directory.page(Membership, {"entity_id": ACME}, limit=500)
    assert not [each for each in members if each.user_id.startswith("id-p")]


@pytest.mark.parametrize("count", [40, 100])
async def test_a_level_that_was_given_since_is_not_ended_with_a_hundred_others(made: World, count: int) -> None:
    """D55: as for one membership."""
    registry = made.provider.registry
    [request] = await asked(made, count, ())
    level = Administrator(user_id="id-p007", entity_id=ACME, level="administrator")
    await made.write(level)  # approved since
    with pytest.raises(Refused):
        await approvals.approve_request(
            registry, request.request_id, actor=owner(made, "alice"), reason="r", now=made.clock()
        )
    assert await registry.directory.find(Administrator, *level.key) == level


async def test_an_approval_of_many_is_made_whole_or_not_at_all(made: World) -> None:
    """D55: one transaction, also of more changes than other writes have in one."""
    [request] = await asked(made, 70, ("Maker", "Checker", "Viewer"))
    assert len(request.changes) == 280
    directory = made.provider.registry.directory
    nowhere = Assignment(user_id="id-p001", entity_id=ACME, service_id="NONE", role="Maker")
    approved = replace(request, state="approved")
    with pytest.raises(MissingReference):
        await directory.write([*request.changes, Change(request, approved), Change(None, nowhere)])
    assert len([row async for row in directory.scan(Assignment)]) == 210
    assert await directory.find(ChangeRequest, request.request_id) == request


async def test_the_level_that_ends_with_a_membership_is_recorded_once(made: World) -> None:
    """D57: the request names it, too."""
    await acme(made)
    registry, level = made.provider.registry, Administrator(user_id="id-cora", entity_id=ACME, level="administrator")
    await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="all"), level)
    held = await registry.directory.find(Membership, "id-cora", ACME)
    asking = RequestDetails("She left", made.clock(), "u")
    request = await write_changes(registry, owner(made), [Change(held, None)], asking=asking)
    assert request is not None
    await approvals.approve_request(
        registry, request.request_id, actor=owner(made, "alice"), reason="Yes", now=made.clock()
    )
    assert len(await made.audit("administrator.remove")) == 1


@pytest.mark.full
async def test_no_more_changes_wait_than_pages_can_look_through(made: World) -> None:
    """D55: pages of an entity read all that waits, in the loop that serves every other entity."""
    await acme(made)
    roles = tuple(f"R{number}" for number in range(19))
    people = [f"id-p{number:03}" for number in range(100)]
    await made.write(
        entity(ACME, "Acme Pte. Ltd.", approvals="all"),
        Service(service_id="PERMITS", name="Permits", roles=roles),
        *(User(user_id=each, user_name=each[3:], name=each) for each in people),
        *(Membership(user_id=each, entity_id=ACME, membership_id=f"m-{each}") for each in people),
        *(
            Assignment(user_id=each, entity_id=ACME, service_id="PERMITS", role=role)
            for each in people
            for role in roles
        ),
    )
    registry, bob, alice = made.provider.registry, owner(made), owner(made, "alice")
    ending = [Change(await registry.directory.find(Membership, each, ACME), None) for each in people]

    async def ask(actor: EntityAdministrator, *changes: Change) -> ChangeRequest:
        made.clock.now += 1
        asked = RequestDetails("They left", made.clock(), f"u{made.clock.now:.0f}")
        found = await write_changes(registry, actor, changes, asking=asked)
        assert found is not None
        return found

    first = await ask(bob, *ending)
    assert len(first.changes) == 2000
    with pytest.raises(Refused, match="at most 2,002 changes that one administrator requested can wait for approval"):
        await ask(bob, ending[0])
    carl = replace(owner(made, "carl"), level="administrator")
    await made.person("carl", entity(ACME, "Acme Pte. Ltd.", approvals="all"))
    await appoint(made, who="carl", level="administrator")
    await ask(carl, *ending)
    await made.person("dan", entity(ACME, "Acme Pte. Ltd.", approvals="all"))
    await appoint(made, who="dan", level="administrator")
    with pytest.raises(Refused, match="at most 4,000 changes of an organisation can wait for approval"):
        await ask(replace(carl, user_id="id-dan"), ending[0])
    level = await registry.directory.find(Administrator, "id-carl", ACME)
    assert (await ask(alice, Change(level, None))).changes[0].before == level
    await approvals.withdraw_request(registry, first.request_id, actor=bob, reason="", now=made.clock())
    await ask(replace(carl, user_id="id-dan"), ending[0])


async def test_the_people_whose_memberships_ended_together_are_named(made: World) -> None:
    """D57, D68: a line names two of them, also if their roles ended first."""
    await acme(made)
    people = [f"id-p{number:03}" for number in range(120)]
    await made.write(
        entity(ACME, "Acme Pte. Ltd.", approvals="none"),
        *(User(user_id=each, user_name=each[3:], name=each) for each in people),
        *(Membership(user_id=each, entity_id=ACME, membership_id=f"m-{each}") for each in people),
        *(Assignment(user_id=each, entity_id=ACME, service_id="PERMITS", role="Maker") for each in people),
    )
    registry, bob = made.provider.registry, owner(made)
    selected = await select_members(registry, [f"m-{each}" for each in people], actor=bob)
    preview = await preview_bulk(registry, selected, "end", actor=bob, today="2027-01-15")
    asking = RequestDetails("They left", made.clock(), "u1")
    await write_bulk(registry, preview, actor=replace(bob, request_id="abc123"), asking=asking)
    browser = await in_portal(made, "history")
    assert "120 memberships ended: p000" in browser.page.text
    assert "(removed person)" not in browser.page.text
