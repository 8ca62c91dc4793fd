"""Worlds for the tests of SCIM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.protocol.fixtures import world, worlds
from tests.scim.calling import Scim, provisioning

if TYPE_CHECKING:
    from tests.protocol.provider import World

__all__ = ["scim", "world", "worlds"]


@pytest.fixture
def scim(world: World) -> Scim:
    """A client with a token of the harbour."""
    return provisioning(world)
