"""Databases for the tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import engines
from tests.adapters import transient_stores
from tests.adapters.databases import Place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.adapters.transient_stores import Opened


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A migrated, empty database of each engine; what is the same on PostgreSQL is among the long tests."""
    if request.param == "sqlite":
        yield Place(engines.sqlite(tmp_path / "corpid.db"))
        return
    with engines.postgresql(migrated=True) as dsn:
        yield Place(dsn)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A database without a schema of each engine; that of SQLite is a file that is not there yet."""
    if request.param == "sqlite":
        yield Place(tmp_path / "empty.db")
        return
    with engines.postgresql() as dsn:
        yield Place(dsn)


@pytest.fixture
def postgresql() -> Iterator[Place]:
    """A migrated, empty database on PostgreSQL."""
    with engines.postgresql(migrated=True) as dsn:
        yield Place(dsn)


@pytest.fixture(params=transient_stores.listed(transient_stores.STORES))
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Each sort of store."""
    return transient_stores.opened(request.param, tmp_path)


@pytest.fixture(params=transient_stores.WITHOUT_CLOCK)
def opened_at(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Stores in which `now` decides expiry."""
    return transient_stores.opened(request.param, tmp_path)


@pytest.fixture(params=transient_stores.listed(transient_stores.WITH_CLOCK))
def opened_by_its_clock(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Stores in which the engine's clock decides expiry."""
    return transient_stores.opened(request.param, tmp_path)


@pytest.fixture(params=transient_stores.WITH_TRANSACTIONS)
def opened_undoing(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Stores whose batches are transactions."""
    return transient_stores.opened(request.param, tmp_path)
