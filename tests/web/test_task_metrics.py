"""Background tasks in the metrics: which fail, and whether the audit's seals are still there."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from base64 import b64encode
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

import pytest
from argon2.profiles import CHEAPEST

from corpid import app, periodic_tasks, settings
from corpid.flows.operations import audit_seals
from corpid.flows.operations.audit_stream import AuditStream
from corpid.flows.operations.readiness import switch_maintenance
from corpid.outbound.passwords import Argon2Passwords
from corpid.rules.directory.access import CommandLine
from corpid.web.telemetry.metrics import Metrics
from tests import engines
from tests.web.served import PATIENCE
from tests.web.test_metrics import Scraped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SWEEP = ("corpid_periodic_task_failing", "short-lived state")
CHANGED = ("corpid_audit_seals_changed_total",)


class Node:
    """A provider on SQLite; its file can be changed by hand."""

    def __init__(self, metrics: Metrics, application: app.Application, file: Path) -> None:
        self._metrics = metrics
        self._file = file
        self.registry = application.provider.registry

    async def scraped(self) -> Scraped:
        return Scraped((await self._metrics.text()).decode())

    async def tells(self, metric: tuple[str, ...], value: float) -> None:
        async with asyncio.timeout(PATIENCE):
            while (await self.scraped()).get(metric) != value:  # noqa: ASYNC110 - a task changes it
                await asyncio.sleep(0.05)

    def execute(self, statement: str) -> list[Any]:
        with closing(sqlite3.connect(self._file, isolation_level=None, timeout=PATIENCE)) as database:
            return database.execute(statement).fetchall()


@asynccontextmanager
async def node(folder: Path, **given: Any) -> AsyncIterator[Node]:
    metrics = Metrics()
    chosen = settings.load(data_dir=folder, base_url="http://localhost:8080", developer_mode=True, **given)
    hashing = Argon2Passwords(threads=1, profile=CHEAPEST)
    async with app.create(chosen, passwords=hashing, metrics=metrics) as application:
        assert chosen.sqlite_path is not None
        yield Node(metrics, application, chosen.sqlite_path)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic_tasks, "_SWEEP_SECONDS", 0.05)
    monkeypatch.setattr(audit_seals, "LOOK_SECONDS", 0.05)


async def test_a_task_that_fails_is_in_the_metrics_until_it_works_again(tmp_path: Path) -> None:
    """The alert CorpidTaskFailing; the log has sweep_failed."""
    file = engines.sqlite(tmp_path / "everything.sqlite")  # short-lived data, too
    async with node(
        tmp_path, database_url=f"sqlite:///{file}", key_encryption_key=b64encode(bytes(32)).decode()
    ) as made:
        await made.tells(SWEEP, 0)
        made.execute("ALTER TABLE transient RENAME TO elsewhere")
        await made.tells(SWEEP, 1)
        made.execute("ALTER TABLE elsewhere RENAME TO transient")
        await made.tells(SWEEP, 0)


async def test_a_seal_that_is_removed_is_counted(tmp_path: Path) -> None:
    """D58: the alert CorpidAuditChanged; the log has audit_seals_changed."""
    async with node(tmp_path) as made:
        actor = CommandLine(by="ops@node1")
        await switch_maintenance(made.registry, on=False, actor=actor)
        await made.tells(CHANGED, 0)
        for (trigger,) in made.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit_seals'"
        ):
            made.execute(f"DROP TRIGGER {trigger}")
        async with asyncio.timeout(PATIENCE):
            while not (await made.scraped())[CHANGED]:
                # Only a seal that the task has seen is missed.
                await audit_seals.Sealer(made.registry, lambda _: None).seal_all(actor, now=time.time())
                await asyncio.sleep(0.2)
                made.execute("DELETE FROM audit_seals")
                await asyncio.sleep(0.2)


async def test_a_stream_of_the_audit_that_hangs_does_not_keep_a_process_from_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the process has counted is written first."""
    hangs: list[AuditStream] = []

    async def end(stream: AuditStream) -> None:
        hangs.append(stream)
        await asyncio.sleep(10 * PATIENCE)

    monkeypatch.setattr(AuditStream, "end", end)
    monkeypatch.setattr(periodic_tasks, "_STREAM_END_SECONDS", 0.2, raising=False)
    async with asyncio.timeout(PATIENCE), node(tmp_path, audit_stream=str(tmp_path / "audit.jsonl")) as made:
        async with asyncio.timeout(PATIENCE):
            while not made.execute("SELECT * FROM server_processes"):  # noqa: ASYNC110 - a task writes it
                await asyncio.sleep(0.05)
    assert hangs
    with closing(sqlite3.connect(tmp_path / "corpid.sqlite")) as database:
        assert database.execute("SELECT * FROM server_processes").fetchall() == []
