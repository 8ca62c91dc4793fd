"""A node whose clock is off its engine's is not ready (D49)."""

from __future__ import annotations

import base64
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests import engines
from tests.protocol.provider import World

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def on_redis(program: str = "redis") -> Iterator[dict[str, Any]]:
    with engines.redis(program) as url:
        yield {"transient_url": url}


@contextmanager
def on_postgresql_alone() -> Iterator[dict[str, Any]]:
    with engines.postgresql(migrated=True) as url:
        yield {"database_url": url, "key_encryption_key": base64.b64encode(bytes(range(32))).decode()}


ON_VALKEY = pytest.param(partial(on_redis, "valkey"), id="on_valkey", marks=pytest.mark.full)


@pytest.mark.parametrize("apart", [-45, 45])
@pytest.mark.parametrize("engine", [on_redis, ON_VALKEY, pytest.param(on_postgresql_alone, marks=pytest.mark.full)])
def test_more_than_ten_seconds_apart_readyz_says_clock_and_within_them_it_does_not(engine: Any, apart: int) -> None:
    """D49: issue, a node 45 s off its store's clock."""
    with engine() as kept, World(**kept) as world:
        for off, expected in ((apart, True), (apart // 9, False)):
            world.clock.now = time.time() + off
            answer = world.run(world.http.get("/readyz"))
            # The keys of this world are of another year, so the rest is not ready either.
            assert answer.status_code == 503
            assert (answer.json()["part"] == "clock") == expected
