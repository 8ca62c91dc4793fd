"""Worlds for the protocol tests: one for a module whose tests leave it as it was, one for a test that does not.

They speak the current generation, or each of those that a module or a test names, where it shares their rule:
`pytestmark = pytest.mark.generations(*PUSHED)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid.web.telemetry import access_log
from tests.logs import log_left_alone
from tests.protocol import refusals
from tests.protocol.provider import World, Worlds
from tests.world.clock import NOON
from tests.world.generations import pytest_configure, pytest_generate_tests, speaking

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["every_world", "log", "pytest_configure", "pytest_generate_tests", "shared", "speaking", "world", "worlds"]


@pytest.fixture(scope="module", autouse=True)
def log() -> Iterator[None]:
    """The lines that the provider logs, where refusals look for the reference that a caller was told."""
    with log_left_alone():
        access_log.configure(clock=lambda: NOON, stream=refusals.LOG)
        yield
    refusals.LOG.seek(0)
    refusals.LOG.truncate()


@pytest.fixture(scope="module")
def shared(speaking: str) -> Iterator[World]:
    """A world for every test of a module: none of them changes what another one sees, but for time, which passes."""
    with World(generations=(speaking,)) as made:
        yield made


@pytest.fixture(scope="package")
def every_world() -> Iterator[Worlds]:
    made = Worlds()
    yield made
    made.close()


@pytest.fixture(scope="module")
def worlds(every_world: Worlds, speaking: str) -> Worlds:
    """Worlds to be had for one test each."""
    return every_world.speaking(speaking)


@pytest.fixture
def world(worlds: Worlds) -> World:
    """A world of the test's own."""
    return worlds.fresh()
