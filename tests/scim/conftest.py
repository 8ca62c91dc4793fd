"""Worlds for the tests of SCIM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.protocol.provider import World, Worlds
from tests.scim.calling import Scim, provisioning

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
def scim(world: World) -> Scim:
    """A client with a token of the harbour."""
    return provisioning(world)
