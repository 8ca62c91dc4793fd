"""Nobody has proven anything who brings a request in the query, so what one address may begin is counted (D47)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows import kinds
from corpid.protocol.limits import ARRIVALS_FROM_ONE_ADDRESS
from tests.protocol.deployment import ISSUER
from tests.protocol.refusals import told_error

if TYPE_CHECKING:
    from tests.protocol.provider import World, Worlds

HERE = "127.0.0.1"


def test_beyond_three_thousand_in_ten_minutes_the_relying_party_is_told_to_try_later(worlds: Worlds) -> None:
    """D47: a limit for each address; others are not concerned, and it ends."""
    world = worlds.fresh(generations=("legacy",), session_seconds=0)
    begun(world, ARRIVALS_FROM_ONE_ADDRESS - 1)
    assert world.get(world.asked(state="st4te"), world.new_browser()).status_code == 303
    answer = world.get(world.asked(state="st4te"), world.new_browser())
    told_error(answer, "temporarily_unavailable", state="st4te", iss=ISSUER)
    elsewhere = world.get(world.asked(), world.new_browser(), x_forwarded_for="192.0.2.9")
    assert elsewhere.status_code == 303
    world.clock.now += kinds.QUERY_ARRIVALS.seconds
    assert world.get(world.asked(), world.new_browser()).status_code == 303


def begun(world: World, times: int) -> None:
    key = kinds.key(kinds.QUERY_ARRIVALS, ISSUER, HERE)

    async def count() -> None:
        async with world.provider.transient.unit(world.clock.now) as unit:
            for _ in range(times):
                await unit.count(kinds.QUERY_ARRIVALS.name, key, kinds.QUERY_ARRIVALS.seconds)

    world.run(count())
