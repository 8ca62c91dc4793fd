"""A node whose clock is off its engine's is not ready (D49)."""

from __future__ import annotations

import time

import pytest

from tests.engines import redis
from tests.protocol.provider import World


@pytest.mark.parametrize("apart", [-45, 45])
def test_more_than_ten_seconds_apart_readyz_says_clock_and_within_them_it_does_not(apart: int) -> None:
    """D49: issue, a node 45 s off its store's clock."""
    with redis() as url, World(transient_url=url) as world:
        for off, expected in ((apart, True), (apart // 9, False)):
            world.clock.now = time.time() + off
            answer = world.run(world.http.get("/readyz"))
            # The keys of this world are of another year, so the rest is not ready either.
            assert answer.status_code == 503
            assert (answer.json()["part"] == "clock") == expected
