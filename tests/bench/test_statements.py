"""What a flow asks of a database is the same number on a quick machine and on a busy one."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from benchmarks import engines
from benchmarks.statements import Asked, Count

NO_CONNECTION: Any = None
CONSTANT = "SELECT $1::text || 'constant'"


def count(seconds: float, idle_seconds: float) -> Count:
    made = Count(NO_CONNECTION, "corpid")
    made.flows, made.seconds, made.idle_seconds = 20, seconds, idle_seconds
    return made


@pytest.mark.parametrize("seconds", [1, 10, 19, 25, 60])
def test_what_is_swept_every_second_is_no_part_of_a_flow_however_long_the_flows_take(seconds: int) -> None:
    """Each flow sweeps three times, and so does the provider by itself, once a second."""
    slow = count(seconds, 15)
    assert slow.each(Asked(calls=60 + seconds, idle_calls=15)) == 3
    assert slow.each(Asked(calls=60 + seconds, idle_calls=16)) == 3


def test_what_only_the_clock_asks_for_is_no_part_of_a_flow() -> None:
    """D50: a cache of five seconds is filled again and again while flows come, and not at all while nobody does."""
    assert count(60, 15).each(Asked(calls=60, idle_calls=15)) == 0
    assert count(60, 15).each(Asked(calls=12)) == 0


def test_one_statement_more_in_each_flow_is_seen() -> None:
    assert count(25, 15).each(Asked(calls=80 + 25, idle_calls=15)) == 4
    assert count(3, 0).each(Asked(calls=20)) == 1


@pytest.mark.full
@pytest.mark.usefixtures("servers")
async def test_a_statement_is_one_whichever_connection_prepared_it() -> None:
    """A provider that is busy beside a flow opens another connection, on which the flow's statements are prepared."""
    with engines.postgresql() as server:
        dsn = server.dsn()
        counting, first, second = [await asyncpg.connect(dsn) for _ in range(3)]
        await first.fetchval(CONSTANT, "")
        made = Count(counting, "postgres")
        for connection in (first, second, first):
            await made.begin()
            await connection.fetchval(CONSTANT, "")
            await made.note(1)
        for each in (counting, first, second):
            await each.close()
        (found,) = [one for one in made.document()["statements"] if "text ||" in one["query"]]
    assert (found["query"], found["calls"], found["each"]) == (CONSTANT, 3, 1)
