"""What a request costs when an entity has many members: as much as with few (D60). Counts, never times."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from corpid.rules.directory.records import Change, Membership, Precondition
from tests.scim.calling import HARBOUR, Scim, metered
from tests.world.provider import EVENT

if TYPE_CHECKING:
    from tests.protocol.provider import World
    from tests.sign_in.costs import Cost, Meter

TENTH = 1.1
AT_ONCE = 100
"""in one transaction"""


def batched(invited: list[Membership], size: int) -> list[list[Membership]]:
    return [invited[start : start + size] for start in range(0, len(invited), size)]


def provision(world: World, number: int) -> None:
    """Invite so many people at once."""
    invited = [
        Membership(
            user_id=str(uuid.uuid4()), entity_id=HARBOUR, membership_id=str(uuid.uuid4()), invited=True,
            user_name=f"person{each}", external_id=str(each), email=f"person{each}@harbour.example",
        )
        for each in range(number)
    ]  # fmt: skip

    async def write() -> None:
        for some in batched(invited, AT_ONCE):
            new = [Precondition(Membership, each.key, None) for each in some]
            await world.provider.registry.directory.write([*new, *(Change(None, each) for each in some)], EVENT)

    world.run(write())


def measured(scim: Scim, meter: Meter, heading: str) -> dict[str, Cost]:
    """The costs of a user's life and of a group's change."""
    meter.heading = heading
    user = scim.added(f"{heading}@harbour.example", externalId=heading)["id"]
    group = scim.group()["id"]
    scim.found("Users", f'userName eq "{heading}@harbour.example"')
    scim.patch(f"/Groups/{group}", {"op": "add", "path": "members", "value": [{"value": user}]})
    meter.heading = ""
    scim.delete(f"/Users/{user}")
    return {name.partition(": ")[2]: cost for name, cost in meter.counted.items() if name.startswith(f"{heading}: ")}


@pytest.mark.full
@pytest.mark.parametrize("number", [2_000, 20_000])
def test_a_request_costs_the_same_among_thousands_of_members(scim: Scim, number: int) -> None:
    """D60: 20,000 POSTs pass without slowing sign-ins, since none of them costs more than the first."""
    with metered(scim.world) as meter:
        measured(scim, meter, "warm")
        few = measured(scim, meter, "few")
        provision(scim.world, number)
        many = measured(scim, meter, "many")
    posted = "POST /scim/v2/Users"
    assert few[posted].transactions >= 1
    assert {name: cost.transactions for name, cost in many.items()} == {
        name: cost.transactions for name, cost in few.items()
    }
    for name, cost in many.items():
        assert cost.calls <= few[name].calls * TENTH, name
