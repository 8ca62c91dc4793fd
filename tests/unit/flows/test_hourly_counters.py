"""Hourly counters: counted in memory, written now and then (D28)."""

from __future__ import annotations

import sqlite3
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from corpid.flows.operations import buffers
from corpid.flows.operations.buffers import CLAIMED_ENTRIES, HourlyCounters, remove_old
from corpid.rules.directory.records import Change
from corpid.rules.hourly_counts import KEPT_DAYS, CountOfReason, Point
from corpid.rules.limits import DAY, HOUR
from tests.adapters.opened import EVENT, sqlite
from tests.unit.flows.test_usage import client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import pytest

    from corpid.stores.sql.registry import Registry

EVER = 2**60
NOW = 1_800_000_000.0


@asynccontextmanager
async def registry_at(path: Path) -> AsyncIterator[Registry]:
    async with sqlite(path) as stores:
        await stores.registry.directory.write([Change(None, client("rp0")), Change(None, client("rp1"))], EVENT)
        yield stores.registry


def sums(**counts: int) -> list[CountOfReason]:
    return [CountOfReason(client_id=client_id, reason="x", count=count) for client_id, count in counts.items()]


async def test_each_sign_in_and_refusal_is_counted_in_the_hour_it_happened(tmp_path: Path) -> None:
    async with registry_at(tmp_path) as registry:
        counters = HourlyCounters()
        counters.sign_in("rp0", NOW)
        counters.refusal("rp0", "x", NOW + 1, authenticated=True)
        counters.refusal("", "y", NOW + HOUR, authenticated=False)
        await counters.flush(registry)
        await counters.flush(registry)
        began = int(NOW) // HOUR * HOUR
        assert await registry.hourly_counts.totals(since=0, until=EVER) == [
            Point(begins_at=began, sign_ins=1, refusals=1),
            Point(begins_at=began + HOUR, sign_ins=0, refusals=1),
        ]


async def test_what_could_not_be_written_is_written_later(tmp_path: Path) -> None:
    async with registry_at(tmp_path) as registry:
        counters = HourlyCounters()
        counters.refusal("rp0", "x", NOW, authenticated=True)
        counters.refusal("rp1", "x", NOW, authenticated=False)
        holder = sqlite3.connect(tmp_path / "corpid.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        await counters.flush(registry)
        counters.refusal("rp0", "x", NOW, authenticated=True)
        holder.rollback()
        holder.close()
        await counters.flush(registry)
        assert await registry.hourly_counts.by_client_and_reason(since=0, until=EVER) == sums(rp0=2, rp1=1)


async def test_strangers_who_name_any_number_of_clients_take_no_more_memory_and_no_count_is_lost(
    tmp_path: Path,
) -> None:
    async with registry_at(tmp_path) as registry:
        counters = HourlyCounters()
        for number in range(3 * CLAIMED_ENTRIES):
            counters.refusal(f"nobody{number}", "x", NOW, authenticated=False)
        counters.refusal("n" * 100_000, "x", NOW, authenticated=False)
        counters.refusal("\ud800", "x", NOW, authenticated=False)
        counters.refusal("rp0", "x", NOW, authenticated=True)
        assert len(counters._claimed) <= CLAIMED_ENTRIES + 1
        await counters.flush(registry)
        assert await registry.hourly_counts.by_client_and_reason(since=0, until=EVER) == [
            CountOfReason(client_id="", reason="x", count=3 * CLAIMED_ENTRIES + 2),
            CountOfReason(client_id="rp0", reason="x", count=1),
        ]


async def test_full_counters_count_on_without_the_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the store is away; the totals stay right."""
    monkeypatch.setattr(buffers, "ENTRIES", 1)

    async with registry_at(tmp_path) as registry:
        counters = HourlyCounters()
        for client_id in ("rp0", "rp1", "rp0"):
            counters.refusal(client_id, "x", NOW, authenticated=True)
        await counters.flush(registry)
        assert await registry.hourly_counts.by_client_and_reason(since=0, until=EVER) == [
            CountOfReason(client_id="", reason="x", count=1),
            CountOfReason(client_id="rp0", reason="x", count=2),
        ]


async def test_counters_end_after_90_days(tmp_path: Path) -> None:
    async with registry_at(tmp_path) as registry:
        counters = HourlyCounters()
        counters.sign_in("rp0", NOW)
        await counters.flush(registry)
        assert await remove_old(registry, now=NOW + KEPT_DAYS * DAY) == 0
        assert await remove_old(registry, now=NOW + KEPT_DAYS * DAY + HOUR) == 1
