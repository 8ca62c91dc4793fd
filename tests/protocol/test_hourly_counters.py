"""What the hourly counters count of a deployment's requests (D28)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.protocol.provider import World, Worlds
from tests.protocol.test_refusal_reasons import line_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def world(worlds: Worlds) -> World:
    """One of its own: what earlier tests did waits in the memory of a shared one."""
    return worlds.fresh(name="Counters")


def counted(world: World) -> dict[tuple[str, str], int]:
    registry = world.provider.registry
    world.run(world.provider.counters.flush(registry))
    sums = world.run(registry.hourly_counts.by_client_and_reason(since=0, until=2**60))
    return {(each.client_id, each.reason): each.count for each in sums}


def test_tokens_that_a_client_receives_count_as_one_completed_sign_in(world: World) -> None:
    issued = world.tokens()
    assert issued
    assert counted(world) == {("rp-1", ""): 1}


def test_refusals_count_by_client_and_reason_and_strangers_as_one_unknown_client(world: World) -> None:
    reason = line_of(world.push(response_mode="fragment"))["reason"]
    claimed = line_of(world.push(client_assertion="e30.e30.e30"))["reason"]
    for number in range(3):
        world.push(client_assertion="e30.e30.e30", client_id=f"nobody{number}")
    assert counted(world) == {("rp-1", reason): 1, ("rp-1", claimed): 1, ("", claimed): 3}


def test_what_was_counted_is_written_when_the_server_stops(tmp_path: Path) -> None:
    with World(at=tmp_path) as world:
        world.push(client_assertion="e30.e30.e30", client_id="nobody")
    with closing(sqlite3.connect(tmp_path / "corpid.sqlite")) as database:
        assert database.execute("SELECT client_id, sum(count) FROM hourly_counts").fetchall() == [("", 1)]
