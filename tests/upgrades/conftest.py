"""Migrations of a later version, and databases that wait for them."""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import pytest

from corpid.stores.sql import migration
from tests.adapters.conftest import empty, place, postgresql
from tests.upgrades.later import MIGRATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["empty", "later", "place", "postgresql"]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[], AbstractContextManager[None]]:
    """Within it this process is of the later version; outside of it, of the present one."""

    @contextmanager
    def within() -> Iterator[None]:
        with monkeypatch.context() as patched:
            patched.setattr(migration, "LOCATIONS", [*migration.LOCATIONS, MIGRATIONS])
            yield

    return within
