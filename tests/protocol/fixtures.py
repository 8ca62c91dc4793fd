"""Fixtures of packages whose tests each need a world of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
