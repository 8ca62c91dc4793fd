"""The provider that is asked; it serves pushed requests and those in a query."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from corpid import settings
from tests.fuzz.provider import ISSUER, RECORDS, World
from tests.unit.rules.oauth.given import NOW
from tests.world.provider import RunningProvider, started

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with asyncio.Runner() as runner:
        data_dir = tmp_path_factory.mktemp("fuzz")
        chosen = settings.load(data_dir=data_dir, base_url=ISSUER, generations=("current", "legacy"))
        opened = started(RunningProvider, chosen, clock=lambda: NOW)
        running = runner.run(opened.__aenter__())
        runner.run(running.write(*RECORDS))
        yield World(runner=runner, application=running.application)
        runner.run(opened.__aexit__(None, None, None))
