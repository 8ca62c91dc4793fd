"""Worlds for the tests of the admin API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.api.calling import Api, calling
from tests.protocol.provider import World, Worlds

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="package")
def worlds() -> Iterator[Worlds]:
    """Worlds to be had for one test each."""
    made = Worlds()
    yield made
    made.close()


@pytest.fixture
def world(worlds: Worlds) -> World:
    """A world of the test's own."""
    return worlds.fresh()


@pytest.fixture
def api(world: World) -> Api:
    """A client with every scope that is bound to nothing."""
    return calling(world)
