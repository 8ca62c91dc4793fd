"""Counting in memory, and writing now and then (Spec "Generations")."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from corpid.flows.operations import buffers
from corpid.flows.operations.buffers import DeprecatedUsage
from corpid.rules.directory.records import Change
from corpid.rules.oauth.deprecated_usage import UseCount
from corpid.rules.oauth.records import Client
from tests.adapters.opened import EVENT, sqlite

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from corpid.stores.sql.registry import Registry

NOW = 1_800_000_000.0


def client(client_id: str) -> Client:
    return Client(client_id=client_id, name="RP", redirect_uris=("https://rp.example/cb",), jwks='{"keys":[]}')


@asynccontextmanager
async def registry_at(path: Path, clients: int = 1) -> AsyncIterator[Registry]:
    async with sqlite(path) as stores:
        await stores.registry.directory.write([Change(None, client(f"rp{n}")) for n in range(clients)], EVENT)
        yield stores.registry


def use(count: int, habit: str = "", *, client_id: str = "rp0", last_at: float = NOW) -> UseCount:
    return UseCount(client_id=client_id, generation="legacy", habit=habit, count=count, last_at=int(last_at))


async def test_a_sign_in_counts_once_and_so_does_each_of_its_habits(tmp_path: Path) -> None:
    async with registry_at(tmp_path) as registry:
        log = DeprecatedUsage()
        log.note("rp0", "legacy", ("without_state", "without_state", "response_mode"), NOW)
        log.note("rp0", "legacy", (), NOW + 5.9)
        log.note("rp0", "legacy", iter(["without_state"]), NOW + 3)
        assert await registry.usage.list_all() == []
        await log.flush(registry)
        assert await registry.usage.list_all() == [
            use(3, last_at=NOW + 5),
            use(1, "response_mode"),
            use(2, "without_state", last_at=NOW + 3),
        ]


async def test_what_was_written_is_not_written_again(tmp_path: Path) -> None:
    async with registry_at(tmp_path) as registry:
        log = DeprecatedUsage()
        log.note("rp0", "legacy", (), NOW)
        await log.flush(registry)
        await log.flush(registry)
        log.note("rp0", "legacy", (), NOW + 1)
        await log.flush(registry)
        assert await registry.usage.list_all() == [use(2, last_at=NOW + 1)]


@pytest.mark.full
async def test_a_store_that_is_busy_gets_the_counts_at_the_next_flush(tmp_path: Path) -> None:
    """Another process writes for longer than a request waits; what is noted meanwhile is added."""

    async def note_later(log: DeprecatedUsage) -> None:
        log.note("rp0", "legacy", (), NOW + 9)

    async with registry_at(tmp_path) as registry:
        log = DeprecatedUsage()
        log.note("rp0", "legacy", ("without_nonce",), NOW)
        other = sqlite3.connect(tmp_path / "corpid.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        await asyncio.gather(log.flush(registry), note_later(log))
        other.rollback()
        other.close()
        assert await registry.usage.list_all() == []
        await log.flush(registry)
        assert await registry.usage.list_all() == [use(2, last_at=NOW + 9), use(1, "without_nonce")]


async def test_a_flush_that_is_stopped_loses_nothing(tmp_path: Path) -> None:
    async with registry_at(tmp_path) as registry:
        log = DeprecatedUsage()
        log.note("rp0", "legacy", (), NOW)
        other = sqlite3.connect(tmp_path / "corpid.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        flushing = asyncio.create_task(log.flush(registry))
        await asyncio.sleep(0)
        flushing.cancel()
        await asyncio.wait([flushing])
        assert flushing.cancelled()
        other.rollback()
        other.close()
        await log.flush(registry)
        assert await registry.usage.list_all() == [use(1)]


async def test_many_counters_are_written_in_short_transactions(tmp_path: Path) -> None:
    async with registry_at(tmp_path, clients=450) as registry:
        log = DeprecatedUsage()
        for number in range(450):
            log.note(f"rp{number}", "legacy", (), NOW)
        await log.flush(registry)
        assert len(await registry.usage.list_all()) == 450


async def test_a_full_log_counts_on_what_it_holds_and_nothing_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffers, "ENTRIES", 2)

    async with registry_at(tmp_path, clients=3) as registry:
        log = DeprecatedUsage()
        for client_id in ("rp0", "rp1", "rp2", "rp0"):
            log.note(client_id, "legacy", (), NOW)
        await log.flush(registry)
        assert await registry.usage.list_all() == [use(2), use(1, client_id="rp1")]
        log.note("rp2", "legacy", (), NOW)
        await log.flush(registry)
        assert len(await registry.usage.list_all()) == 3
