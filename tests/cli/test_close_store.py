"""`corpid maintenance close-store` and `open-store`: a restart of Redis that loses nothing (D67, docs/decisions/0027)."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from corpid import engines, settings
from corpid.rules.server_processes import ServerProcess
from tests.engines import RedisServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Terminal

WORDS = ("maintenance", "close-store")


@pytest.fixture
def server(terminal: Terminal) -> Iterator[RedisServer]:
    """A Redis that this deployment has used."""
    with RedisServer("--save", "3600 1") as running, terminal.given({"transient_url": running.url}):
        terminal.done("maintenance", "status")
        yield running


def loss() -> float:
    async def look() -> float:
        async with engines.open_stores(settings.load(), time.time) as opened:
            return opened.transient.loss.reject_issued_before

    return asyncio.run(look())


def test_after_a_restart_that_was_prepared_nothing_more_is_refused(terminal: Terminal, server: RedisServer) -> None:
    before = loss()
    assert "SHUTDOWN SAVE" in terminal.done(*WORDS)
    assert "closed for a restart" in terminal.refused("maintenance", "status")
    server.stop()
    server.start()
    assert loss() == before


def test_open_store_undoes_it(terminal: Terminal, server: RedisServer) -> None:
    before = loss()
    terminal.done(*WORDS)
    assert "closed for a restart" in terminal.refused(*WORDS)
    terminal.done("maintenance", "open-store")
    assert loss() == before
    assert "not closed" in terminal.refused("maintenance", "open-store")


def test_each_is_in_the_audit(terminal: Terminal, server: RedisServer) -> None:
    terminal.done(*WORDS)
    terminal.done("maintenance", "open-store")
    listed = terminal.done("audit", "list", "--json")
    assert "store.close" in listed
    assert "store.open" in listed


def test_the_doctor_says_that_it_is_closed(terminal: Terminal, server: RedisServer) -> None:
    terminal.done(*WORDS)
    told = terminal.run("doctor").output
    assert "It is closed for a restart" in told
    assert "open-store" in told


def test_a_deployment_without_redis_has_nothing_to_close(terminal: Terminal) -> None:
    """SQLite and PostgreSQL lose nothing when they are restarted."""
    assert "nothing to close" in terminal.done(*WORDS)
    assert "nothing to close" in terminal.done("maintenance", "open-store")


def test_a_server_of_another_version_may_not_know_that_it_is_closed(terminal: Terminal, server: RedisServer) -> None:
    now = int(time.time())
    other = ServerProcess(
        process_id="p1", host="node-9", number=17, address="", version="0.0.9", started_at=now, seen_at=now, settings={}
    )
    terminal.look(lambda stores: stores.registry.server_processes.note(other))
    told = terminal.refused(*WORDS)
    assert "node-9 (17) has version 0.0.9" in told
    terminal.done("maintenance", "status")
