"""Databases for the tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import engines
from tests.adapters.places import Place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A migrated, empty database of each engine."""
    if request.param == "sqlite":
        yield Place(tmp_path / "corpid.db")
        return
    with engines.postgresql(migrated=True) as dsn:
        yield Place(dsn)


@pytest.fixture
def postgresql() -> Iterator[Place]:
    """A migrated, empty database on PostgreSQL."""
    with engines.postgresql(migrated=True) as dsn:
        yield Place(dsn)
