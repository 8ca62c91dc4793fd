"""Worlds for the tests of the admin API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.api.calling import Api, calling
from tests.protocol.fixtures import world, worlds

if TYPE_CHECKING:
    from tests.protocol.provider import World

__all__ = ["api", "world", "worlds"]


@pytest.fixture
def api(world: World) -> Api:
    """A client with every scope that is bound to nothing."""
    return calling(world)
