"""Many changes at once: a hundred in each transaction or request, with one batch (D81, D84)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.flows.directory.write import Refused, RequestDetails, guard_records, write_parts
from corpid.rules.directory.approvals import MOST_CHANGES
from corpid.rules.directory.records import Assignment, Change, ChangeRequest
from tests.manage.scene import ACME
from tests.manage.test_requests import ROLE
from tests.manage.test_undo import FIRM, firm
from tests.manage.test_who_is_meant import owner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.sign_in.world import World

ROWS = [replace(ROLE, ref=f"{number:03}") for number in range(150)]


async def give(made: World, rows: Sequence[Assignment]) -> list[ChangeRequest | None]:
    changes = [Change(None, row) for row in rows]
    parts = [changes[start : start + MOST_CHANGES] for start in range(0, len(changes), MOST_CHANGES)]
    asking = RequestDetails("New colleagues", made.clock(), "bulk")
    writing = write_parts(
        made.provider.registry, owner(made, "alice"), parts, batch="b1", asking=asking, seen=guard_records
    )
    return [request async for _, request in writing]


async def held(made: World) -> int:
    where = {"user_id": "id-cora", "entity_id": ACME}
    return len(await made.provider.registry.directory.page(Assignment, where, after=("",) * 6, limit=200))


async def test_every_event_has_the_batch(made: World) -> None:
    await firm(made)
    assert await give(made, ROWS) == [None, None]
    assert await held(made) == len(ROWS)
    events = [each for each in await made.provider.registry.audit.entries() if each.action == "assignment.add"]
    assert {each.detail["batch"] for each in events} == {"b1"}


async def test_each_hundred_is_written_as_a_whole_or_not_at_all(made: World) -> None:
    await firm(made)
    with pytest.raises(Refused):
        await give(made, [*ROWS[:-1], replace(ROLE, role="Nobody")])
    assert await held(made) == MOST_CHANGES


async def test_requests_are_cut_at_a_hundred_and_stand_together(made: World) -> None:
    await firm(made)
    await made.write(replace(FIRM, approvals="roles"))
    first, second = await give(made, ROWS)
    assert first is not None
    assert second is not None
    assert (len(first.changes), len(second.changes)) == (MOST_CHANGES, len(ROWS) - MOST_CHANGES)
    assert first.request_id.removesuffix("-0001") == second.request_id.removesuffix("-0002")
    assert await held(made) == 0
