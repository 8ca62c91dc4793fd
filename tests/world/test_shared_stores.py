"""Tests that share a database one after the other find nothing of one another."""

from __future__ import annotations

import pytest

from tests import engines
from tests.sign_in.world import World, new_world, walk_to

pytestmark = pytest.mark.full


async def test_nothing_of_a_test_is_left_for_the_next_one() -> None:
    """Neither people, sessions and audit, nor time; and what a provider keeps in memory is another provider's."""
    seen: list[World] = []

    async def story(made: World) -> None:
        assert await made.provider.registry.directory.user("id-bob") is None
        assert await made.audit("sign_in.complete") == []
        assert await made.provider.registry.sessions.list_for_user("id-alice", now=made.clock()) == []
        began = made.clock()
        await made.person("bob")
        browser = await made.browser()
        await walk_to(made, browser, await made.relying_party(), ["password", "code", "entity"])
        assert len(await made.audit("sign_in.complete")) == 1
        made.clock.pass_(3600)
        seen.append(made)
        assert began == seen[0].clock() - 3600

    async with new_world(session_seconds=3600) as made:
        await story(made)
    async with new_world(session_seconds=3600) as made:
        await story(made)
    first, second = seen
    assert first.directory == second.directory
    assert first.provider is not second.provider


async def test_a_world_on_its_first_store_refuses_nothing_for_its_age() -> None:
    """D49: however far the clock of the test is from the engine's, and however often the engine was looked at since."""
    with engines.redis() as url:
        async with new_world(transient_url=url) as made:
            assert made.provider.transient.loss.reject_issued_before == 0.0
