"""What holds on SQLite only: one writer, power loss."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import TYPE_CHECKING

import pytest

from corpid.rules.failures import StoreUnavailable
from corpid.stores.data_loss import after_machine_restart
from tests.adapters.opened import EVENT, NOW, sqlite

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_database_that_was_broken_is_not_ready(tmp_path: Path) -> None:
    async with sqlite(tmp_path) as stores:
        connection = sqlite3.connect(tmp_path / "corpid.db")
        connection.execute("DROP TABLE deployment")
        connection.close()
        with pytest.raises(StoreUnavailable, match="no such table: deployment"):
            await stores.registry.deployment.ready()


async def test_a_registry_write_of_another_task_waits_for_the_unit_and_is_its_own(tmp_path: Path) -> None:
    async with sqlite(tmp_path) as stores:
        async with stores.transient.batch(NOW):
            writing = asyncio.create_task(stores.registry.audit.write(EVENT, now=NOW))
            await asyncio.sleep(0)
            assert not writing.done()
        await writing
        assert len(await stores.registry.audit.entries()) == 1


async def test_after_the_machine_went_down_the_short_lived_table_is_empty_and_the_moment_is_kept(
    tmp_path: Path,
) -> None:
    """docs/reliability.md: SQLite after a power loss fails closed."""
    async with sqlite(tmp_path) as stores:
        assert stores.transient.loss.reject_issued_before == 0.0
        async with stores.transient.batch(NOW) as batch:
            await batch.put("code", b"k", b"grant", 60)
        same = await after_machine_restart(stores.database, start="first", now=NOW + 1)
        assert same == NOW + 1
        assert await stores.transient.get("code", b"k", now=NOW) is None
        async with stores.transient.batch(NOW) as batch:
            await batch.put("code", b"k", b"grant", 60)
        assert await after_machine_restart(stores.database, start="first", now=NOW + 2) == NOW + 1
        assert await stores.transient.get("code", b"k", now=NOW) == b"grant"
