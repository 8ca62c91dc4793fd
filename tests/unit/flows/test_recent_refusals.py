"""Refusals of clients: noted in memory, written now and then (D28)."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from corpid.flows.operations.buffers import CLIENTS, REFUSALS_KEPT, RecentRefusals
from corpid.rules.directory.records import Change
from corpid.rules.oauth.refusals import ClientRefusal
from tests.adapters.opened import EVENT, sqlite
from tests.unit.flows.test_usage import client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from corpid.stores.sql.registry import Registry


def refusal(at: int, *, client_id: str = "rp0", claimed: bool = False) -> ClientRefusal:
    return ClientRefusal(
        client_id=client_id,
        claimed=claimed,
        at=at,
        request_id=str(at),
        method="POST",
        path="/par",
        reason="x",
        detail="",
    )


@asynccontextmanager
async def registry_at(path: Path) -> AsyncIterator[Registry]:
    async with sqlite(path) as stores:
        await stores.registry.directory.write([Change(None, client("rp0"))], EVENT)
        yield stores.registry


async def test_strangers_who_claim_to_be_a_client_push_none_of_its_refusals_out(tmp_path: Path) -> None:
    async with registry_at(tmp_path) as registry:
        recent = RecentRefusals()
        for at in range(REFUSALS_KEPT[False] + 1):
            recent.note(refusal(at))
        for at in range(10 * CLIENTS):
            recent.note(refusal(at, client_id=f"nobody{at}", claimed=True))
            recent.note(refusal(at, claimed=True))
        await recent.flush(registry)
        found = await registry.client_refusals.list_for_client("rp0")
        own = [each.at for each in found if not each.claimed]
        assert own == list(range(REFUSALS_KEPT[False], 0, -1))
        assert len([each for each in found if each.claimed]) == REFUSALS_KEPT[True]


async def test_what_could_not_be_written_is_written_later_in_order(tmp_path: Path) -> None:
    async with registry_at(tmp_path) as registry:
        recent = RecentRefusals()
        recent.note(refusal(1))
        holder = sqlite3.connect(tmp_path / "corpid.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        await recent.flush(registry)
        recent.note(refusal(2))
        holder.rollback()
        holder.close()
        await recent.flush(registry)
        assert [each.at for each in await registry.client_refusals.list_for_client("rp0")] == [2, 1]


async def test_a_thousand_invented_clients_keep_no_other_request_waiting(tmp_path: Path) -> None:
    """On SQLite nothing of the store waits, so the flush makes way itself."""
    async with registry_at(tmp_path) as registry:
        recent = RecentRefusals()
        for number in range(50):
            recent.note(refusal(1, client_id=f"nobody{number}", claimed=True))
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(others())
        await recent.flush(registry)
        beside.cancel()
        assert turns >= 50
