"""The audit table lets go of what is older than it need be kept, and of nothing else (docs/decisions/0008)."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from corpid.rules.audit import AuditEvent
from corpid.stores.encryption_at_rest import SecretCipher
from corpid.stores.sql.audit_retention import RetentionPeriods
from corpid.stores.sql.open import SqlStores, open_postgresql
from corpid.stores.sql.statements import Statement
from tests import engines
from tests.adapters.opened import EVENT, KEY, NOW, sqlite

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path


DAY = 86_400
PRUNED = AuditEvent(actor="operator", action="audit.prune")


@asynccontextmanager
async def postgresql(_: Path) -> AsyncIterator[SqlStores]:
    with engines.postgresql(migrated=True) as dsn:
        stores = await open_postgresql(dsn, SecretCipher(KEY), lambda: NOW)
        try:
            yield stores
        finally:
            await stores.close()


ENGINES: dict[str, Callable[[Path], AbstractAsyncContextManager[SqlStores]]] = {
    "sqlite": sqlite,
    "postgresql": postgresql,
}


async def written(stores: SqlStores, *ages: tuple[str, float]) -> None:
    for action, days in ages:
        await stores.registry.audit.write(AuditEvent(actor="system", action=action), now=NOW - days * DAY)


async def left(stores: SqlStores) -> list[str]:
    return [entry.action for entry in await stores.registry.audit.entries(limit=10_000)]


async def pruned(stores: SqlStores, **kept: int) -> int:
    """How many entries went."""
    return (await stores.registry.retention.prune(PRUNED, now=NOW, kept=RetentionPeriods(**kept))).removed


async def pruned_and_lost(stores: SqlStores) -> None:
    async with stores.database.transaction():
        assert await pruned(stores, audit_days=30) == 1
        raise RuntimeError("power")


@pytest.mark.parametrize("engine", ENGINES)
async def test_only_what_is_older_goes_and_the_table_says_so(tmp_path: Path, engine: str) -> None:
    async with ENGINES[engine](tmp_path) as stores:
        ages = (("key.rotate", 400), ("sign_in.complete", 400), ("sign_in.complete", 100), ("key.revoke", 100))
        await written(stores, *ages, ("sign_in.refuse", 10))
        assert await pruned(stores, audit_days=365, sign_in_days=90) == 3
        assert await left(stores) == ["key.revoke", "sign_in.refuse", "audit.prune"]
        (*_, event) = await stores.registry.audit.entries()
        days = {"audit_days": "365", "sign_in_days": "90", "audit_detail_days": "0"}
        assert event.detail == {**days, "removed": "3", "erased": "0"}
        assert await pruned(stores, audit_days=365, sign_in_days=90) == 0
        assert len(await left(stores)) == 3, "a prune that removes nothing is no event"


@pytest.mark.parametrize("engine", ENGINES)
async def test_the_table_refuses_to_be_changed_before_and_after(tmp_path: Path, engine: str) -> None:
    """docs/audit.md: the table is append-only."""

    async def refused(stores: SqlStores) -> None:
        for text in ("DELETE FROM audit", "UPDATE audit SET actor = 'nobody'"):
            with pytest.raises(Exception, match="append-only"):
                await stores.database.run(Statement(sa.text(text)), {})

    async with ENGINES[engine](tmp_path) as stores:
        await written(stores, ("key.rotate", 400), ("key.rotate", 1))
        await refused(stores)
        assert await pruned(stores, audit_days=30) == 1
        await refused(stores)
        assert await left(stores) == ["key.rotate", "audit.prune"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_zero_days_keep_for_ever(tmp_path: Path, engine: str) -> None:
    async with ENGINES[engine](tmp_path) as stores:
        await written(stores, ("key.rotate", 9000), ("sign_in.complete", 9000))
        assert await pruned(stores) == 0
        assert await pruned(stores, sign_in_days=30) == 1
        assert await left(stores) == ["key.rotate", "audit.prune"]


async def test_more_than_one_stretch_goes_and_an_entry_of_a_wrong_clock_stops_nothing(tmp_path: Path) -> None:
    async with sqlite(tmp_path) as stores:
        async with stores.database.transaction():
            await written(stores, ("clock.ahead", -9000), *[("key.rotate", 400)] * 1200, ("key.revoke", 1))
        assert await pruned(stores, audit_days=365) == 1200
        assert await left(stores) == ["clock.ahead", "key.revoke", "audit.prune"]


async def test_a_prune_that_fails_leaves_rows_and_rule(tmp_path: Path) -> None:
    """The rule is lifted inside the transaction that sets it again."""
    async with sqlite(tmp_path) as stores:
        await written(stores, ("key.rotate", 400))
        with closing(sqlite3.connect(tmp_path / "corpid.db")) as other:
            before = other.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name").fetchall()
        with pytest.raises(RuntimeError, match="power"):
            await pruned_and_lost(stores)
        assert await left(stores) == ["key.rotate"]
        await pruned(stores, audit_days=30)
    with closing(sqlite3.connect(tmp_path / "corpid.db")) as other:
        after = other.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name").fetchall()
    assert [sql.strip() for (sql,) in after] == [sql.strip() for (sql,) in before]


async def test_servers_write_on_while_old_entries_go(tmp_path: Path) -> None:
    """Another connection meets a changed rule between two of its statements."""
    async with sqlite(tmp_path) as stores, sqlite(tmp_path) as server:
        await written(stores, *[("key.rotate", 400)] * 30)
        await server.registry.audit.write(EVENT, now=NOW)
        assert await pruned(stores, audit_days=30) == 30
        await server.registry.audit.write(EVENT, now=NOW)
        assert await left(server) == ["test.change", "audit.prune", "test.change"]
