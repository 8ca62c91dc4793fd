"""What holds on SQLite only: plans of its own, one writer, power loss."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from corpid.adapters.sql.restarts import forgotten_at
from corpid.ports import StoreUnavailable
from tests.adapters.opened import EVENT, NOW, sqlite
from tests.adapters.request_statements import request_statements

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from corpid.adapters.sql.stores import SqlStores


def run(path: Path, scenario: Callable[[SqlStores], Awaitable[object]]) -> None:
    async def opened() -> None:
        async with sqlite(path) as stores:
            await scenario(stores)

    asyncio.run(opened())


def test_no_look_up_of_a_request_scans_a_table(tmp_path: Path) -> None:
    """Costs stay flat from a thousand to a million users: DESIGN "Speed"."""

    async def scenario(stores: SqlStores) -> None:
        statements = request_statements(stores)
        plans = {name: plan(tmp_path, statement.text) for name, statement in statements.items()}
        assert {name: steps for name, steps in plans.items() if any(s.startswith("SCAN") for s in steps)} == {}
        assert all(any("SEARCH" in step for step in steps) for steps in plans.values())

    run(tmp_path, scenario)


def test_no_removal_scans_a_table_for_what_refers_to_it(tmp_path: Path) -> None:
    """Every foreign key is the start of an index, so that removing one entity does not read them all."""

    async def scenario(stores: SqlStores) -> None:
        for (table,) in query(tmp_path, "SELECT name FROM sqlite_schema WHERE type = 'table'"):
            for columns in references(tmp_path, table):
                where = " AND ".join(f"{column} = ?" for column in columns)
                assert all(step.startswith("SEARCH") for step in plan(tmp_path, f"DELETE FROM {table} WHERE {where}"))

    run(tmp_path, scenario)


def references(path: Path, table: str) -> list[list[str]]:
    columns: dict[int, list[str]] = {}
    for number, _, _, column, *_ in query(path, f"PRAGMA foreign_key_list({table})"):
        columns.setdefault(number, []).append(column)
    return list(columns.values())


def plan(path: Path, statement: str) -> list[str]:
    return [row[3] for row in query(path, f"EXPLAIN QUERY PLAN {statement}", (None,) * statement.count("?"))]


def query(path: Path, statement: str, values: tuple[None, ...] = ()) -> list[Any]:
    connection = sqlite3.connect(path / "corpid.db")
    rows = connection.execute(statement, values).fetchall()
    connection.close()
    return rows


def test_a_database_that_was_broken_is_not_ready(tmp_path: Path) -> None:
    async def scenario(stores: SqlStores) -> None:
        connection = sqlite3.connect(tmp_path / "corpid.db")
        connection.execute("DROP TABLE deployment")
        connection.close()
        with pytest.raises(StoreUnavailable, match="no such table: deployment"):
            await stores.registry.deployment.ready()

    run(tmp_path, scenario)


def test_a_registry_write_of_another_task_waits_for_the_unit_and_is_its_own(tmp_path: Path) -> None:
    async def scenario(stores: SqlStores) -> None:
        async with stores.transient.unit(NOW):
            writing = asyncio.create_task(stores.registry.audit.write(EVENT, now=NOW))
            await asyncio.sleep(0)
            assert not writing.done()
        await writing
        assert len(await stores.registry.audit.entries()) == 1

    run(tmp_path, scenario)


def test_after_the_machine_went_down_the_short_lived_table_is_empty_and_the_moment_is_kept(tmp_path: Path) -> None:
    """DESIGN "What each engine promises": SQLite after a power loss fails closed."""

    async def scenario(stores: SqlStores) -> None:
        assert stores.transient.forgotten_at == 0.0
        async with stores.transient.unit(NOW) as unit:
            await unit.put("code", b"k", b"grant", 60)
        same = await forgotten_at(stores.database, start="first", now=NOW + 1)
        assert same == NOW + 1
        assert await stores.transient.get("code", b"k", now=NOW) is None
        async with stores.transient.unit(NOW) as unit:
            await unit.put("code", b"k", b"grant", 60)
        assert await forgotten_at(stores.database, start="first", now=NOW + 2) == NOW + 1
        assert await stores.transient.get("code", b"k", now=NOW) == b"grant"

    run(tmp_path, scenario)
