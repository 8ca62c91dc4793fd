"""The log says once what changes for the whole process: engines, keys, maintenance, settings (D49)."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from msgspec.structs import replace

from corpid import app, settings
from corpid.flows.operations import readiness, signing_keys
from corpid.flows.operations.process_reports import SettingsReporter
from corpid.flows.operations.readiness import CLOCK, PARTS, TRANSIENT, Readiness, switch_maintenance
from corpid.rules.directory.access import CommandLine
from tests.engines import RedisServer
from tests.logs import capture_logs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping
    from pathlib import Path

    from corpid.app import Application
    from corpid.rules.signing_keys import ProviderKey

pytestmark = pytest.mark.full

BASE = "http://localhost:8080"
WAIT = 20.0


@asynccontextmanager
async def process(path: Path, *, ahead: float = 0.0, **options: Any) -> AsyncIterator[tuple[Application, Any]]:
    """A process that nobody probes, and its address. Its clock is `ahead` of the machine's."""
    chosen = settings.load(base_url=BASE, data_dir=path, developer_mode=True, **options)
    async with (
        app.create(chosen, clock=lambda: time.time() + ahead) as made,
        httpx.AsyncClient(transport=httpx.ASGITransport(app=made.asgi), base_url=BASE) as http,
    ):
        yield made, http


def said(lines: Iterable[Mapping[str, Any]], *events: str) -> list[tuple[str, str]]:
    return [(line["event"], line["detail"]) for line in lines if line["event"] in events]


async def until(lines: list[Any], event: str) -> None:
    async with asyncio.timeout(WAIT):
        while not said(lines, event):  # noqa: ASYNC110 - another task writes them
            await asyncio.sleep(0.05)


async def test_an_engine_that_fails_and_works_again_is_logged_once_though_nobody_probes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D49: one warning for each change, whatever is asked meanwhile."""
    monkeypatch.setattr(readiness, "WATCHED_EVERY_SECONDS", 0.2)

    with RedisServer() as server, capture_logs() as lines:
        async with process(tmp_path, transient_url=server.url) as (_, http):
            server.command("CONFIG", "SET", "maxmemory", "1")
            await until(lines, "unavailable")
            for _ in range(20):
                assert (await http.get("/readyz")).status_code == 503
            server.command("CONFIG", "SET", "maxmemory", "0")
            await until(lines, "available_again")
    gone, back = said(lines, "unavailable", "available_again")
    assert gone[1].startswith("short-lived state: ")
    assert back == ("available_again", "short-lived state")
    assert {line["log_level"] for line in lines if line["event"] in {"unavailable", "available_again"}} == {"warning"}


async def test_each_part_is_reported_separately(tmp_path: Path) -> None:
    """D49: also the clock, whose node can still use everything."""

    async def parts(ahead: float) -> dict[str, str]:
        async with process(tmp_path, transient_url=server.url, ahead=ahead) as (made, _):
            return dict(await Readiness(made.provider).parts())

    with RedisServer() as server:
        assert await parts(0) == dict.fromkeys(PARTS, "")
        apart = await parts(45)
        assert apart.pop(CLOCK).startswith("45 s ahead of the engine's")
        assert apart == {part: "" for part in PARTS if part != CLOCK}
        server.command("CONFIG", "SET", "maxmemory", "1")
        full = await parts(0)
    assert [part for part, reason in full.items() if reason] == [TRANSIENT]


async def test_a_suspicion_makes_the_process_look_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D49: a failure between two looks is logged as well."""
    monkeypatch.setattr(readiness, "WATCHED_EVERY_SECONDS", 3600)

    with RedisServer() as server:
        async with process(tmp_path, transient_url=server.url) as (made, _):
            noticed: list[str] = []
            watched = Readiness(made.provider, lambda part, _: noticed.append(part))
            watching = asyncio.create_task(watched.watch())
            assert not any((await watched.parts()).values())
            server.command("CONFIG", "SET", "maxmemory", "1")
            watched.suspect()
            async with asyncio.timeout(WAIT):
                while not noticed:  # noqa: ASYNC110 - another task writes it
                    await asyncio.sleep(0.05)
            watching.cancel()
            assert noticed == [TRANSIENT]


async def test_rotation_revocation_and_maintenance_are_logged_by_a_process_that_did_not_do_them(tmp_path: Path) -> None:
    """D42, D50: noticed through the database, once each."""
    operator = CommandLine(by="lee@node1")

    async def story() -> None:
        async with process(tmp_path) as (made, _):
            registry = made.provider.registry
            stored = await signing_keys.stored_keys(registry)
            await asyncio.sleep(1.5)  # the process has seen the keys as they are
            assert not said(lines, "signing_key_used", "signing_key_revoked", "maintenance_on")
            await signing_keys.revoke(registry, operator, stored[0].kid, now=time.time())
            await switch_maintenance(registry, on=True, actor=operator)
            for event in ("signing_key_revoked", "signing_key_published", "signing_key_used", "maintenance_on"):
                await until(lines, event)
            await switch_maintenance(registry, on=False, actor=operator)
            await until(lines, "maintenance_off")
            keys.extend(stored)

    keys: list[ProviderKey] = []
    with capture_logs() as lines:
        await story()
    [(_, revoked)] = said(lines, "signing_key_revoked")
    assert keys[0].kid in revoked
    [(_, used)] = said(lines, "signing_key_used")
    assert used == f"{keys[1].kid} signs in place of {keys[0].kid}"
    assert len(said(lines, "signing_key_published", "maintenance_on", "maintenance_off")) == 3


async def test_settings_that_processes_do_not_share_are_logged_when_that_begins_and_ends(tmp_path: Path) -> None:
    """D43, D49: noticed through the database; another version is on purpose."""
    async with process(tmp_path) as (made, _):
        registry, own = made.provider.registry, made.provider.node.process
        while not await registry.server_processes.list_all():  # noqa: ASYNC110 - another task registers it
            await asyncio.sleep(0.05)
        told: list[tuple[str, str]] = []
        reporter = SettingsReporter(made.provider, lambda event, detail: told.append((event, detail)))
        shared = {**own.settings, "key_encryption_key": "0123456789ab"}
        other = replace(own, process_id="other", host="node2", number=7, version="0.0.9", settings=shared)
        await registry.server_processes.note(replace(other, settings=own.settings))
        await reporter.report_changes(now=time.time())
        assert not told
        await registry.server_processes.note(other)
        for minutes in (1, 2):
            await reporter.report_changes(now=time.time() + 61 * minutes)
        ((event, detail),) = told
        assert event == "settings_differ"
        assert detail.startswith("key_encryption_key: ")
        assert "'0123456789ab' at node2 (7)" in detail
        await registry.server_processes.remove("other")
        await reporter.report_changes(now=time.time() + 200)
        assert told[1:] == [("settings_agree", "key_encryption_key")]
