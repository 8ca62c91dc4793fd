"""The provider that is asked; it serves pushed requests and those in a query."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from corpid import app, settings
from corpid.ports import Upsert
from tests.fuzz.provider import EVENT, ISSUER, RECORDS, World
from tests.unit.rules.oauth.given import NOW

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with asyncio.Runner() as runner:
        data_dir = tmp_path_factory.mktemp("fuzz")
        opened = app.create(
            settings.load(data_dir=data_dir, base_url=ISSUER, generations=("current", "legacy")), clock=lambda: NOW
        )
        application = runner.run(opened.__aenter__())
        registry = application.provider.registry
        runner.run(registry.directory.write([Upsert(record) for record in RECORDS], EVENT))
        yield World(runner=runner, application=application)
        runner.run(opened.__aexit__(None, None, None))
