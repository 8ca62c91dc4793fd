"""The end of many memberships by one request names all that ends (D53, D55, D81)."""

from __future__ import annotations

import pytest

from corpid.flows.directory import approvals
from corpid.flows.directory.bulk_members import preview_bulk, select_members, write_bulk
from corpid.flows.directory.write import Refused, RequestDetails
from corpid.rules.directory.records import Administrator, Assignment, ChangeRequest, Membership, Service, User
from tests.manage.scene import ACME
from tests.manage.test_requests import acme
from tests.manage.test_who_is_meant import owner
from tests.sign_in.world import World, entity


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
