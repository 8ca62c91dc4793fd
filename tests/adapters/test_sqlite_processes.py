"""Several processes on one SQLite file, and processes that die (docs/reliability.md)."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from corpid.rules.directory.records import Change, Entity
from corpid.rules.failures import StoreUnavailable
from corpid.stores.sql.sqlite import BUSY_SECONDS, Checkpoints
from corpid.stores.sql.statements import Statement
from tests import engines
from tests.adapters.opened import EVENT, NOW, SPENDER, program, race, sqlite

if TYPE_CHECKING:
    from pathlib import Path

    from corpid.stores.sql.open import SqlStores

pytestmark = pytest.mark.full

TAKER = """
async def main():
    stores = await opened()
    go()
    taken = 0
    for number in range(100):
        async with stores.transient.batch(NOW) as batch:
            taken += await batch.take("code", number.to_bytes(32)) is not None
    print(taken)
    await stores.close()
asyncio.run(main())
"""

REPORTER = """
async def main():
    stores = await opened()
    for number in range(1_000_000):
        async with stores.transient.batch(NOW) as batch:
            assert await batch.add("jti", number.to_bytes(32), 60)
        print(number, flush=True)
asyncio.run(main())
"""

OPENER = """
async def main():
    go()
    stores = await opened()
    print(len([each for each in await stores.registry.audit.entries() if each.action == "deployment.restore"]))
    await stores.close()
asyncio.run(main())
"""

BULK_WRITER = """
async def main():
    stores = await opened()
    changes = [
        Change(None, Entity(entity_id=f"E{n}", type="UEN", registration_number=str(n), country="SG", name=f"Firm {n}"))
        for n in range(20_000)
    ]
    go()
    await stores.registry.directory.write(changes, EVENT)
    print("written")
    await stores.close()
asyncio.run(main())
"""

FIRST_KEYS = """
from corpid.rules.signing_keys import ProviderKey

async def main():
    stores = await opened()
    go()
    key = ProviderKey(kid=sys.argv[2], use="sig", secret="{}", created_at=1, active_from=1)
    print(await stores.registry.keys.add_first([key]))
    await stores.close()
asyncio.run(main())
"""

DISK_WITHOUT_ROOM = """
import resource
from corpid.rules.failures import StoreUnavailable
async def main():
    stores = await opened()
    go()
    async with stores.transient.batch(NOW) as batch:
        await batch.put("code", bytes(32), bytes(1_000_000), 60)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, most))
    stores.database._checkpoints.stop()
    try:
        await stores.registry.deployment.ready()
    except StoreUnavailable as error:
        print(error)
asyncio.run(main())
"""


def test_of_processes_that_open_the_copy_of_a_backup_at_once_one_ends_what_is_in_it(tmp_path: Path) -> None:
    """docs/decisions/0028; the others find it done, none goes on before."""
    path = engines.sqlite(tmp_path / "corpid.db")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("INSERT INTO deployment (name, value) VALUES ('copy', '')")
    connection.close()
    assert race(path, OPENER, processes=4) == ["1"] * 4


async def test_of_several_processes_one_is_first_for_each_jti(tmp_path: Path) -> None:
    """D7, D8: also across processes every use is counted once."""
    won = race(tmp_path / "corpid.db", SPENDER, processes=4)
    assert sum(map(int, won)) == 200

    async with sqlite(tmp_path) as stores:
        assert await stores.transient.get("requests", bytes(32), now=NOW) == b"800"


async def test_of_several_processes_one_takes_each_code(tmp_path: Path) -> None:
    """D18."""
    async with sqlite(tmp_path) as stores, stores.transient.batch(NOW) as batch:
        for number in range(100):
            await batch.put("code", number.to_bytes(32), b"grant", 60)
    taken = race(tmp_path / "corpid.db", TAKER, processes=4)
    assert sum(map(int, taken)) == 100


async def test_of_several_processes_one_makes_the_first_keys(tmp_path: Path) -> None:
    """D42: a deployment starts with one set of keys."""
    made = race(tmp_path / "corpid.db", FIRST_KEYS, processes=4)
    assert sorted(made) == ["False", "False", "False", "True"]

    async with sqlite(tmp_path) as stores:
        assert [key.kid for key in await stores.registry.keys.list_all()] == [str(made.index("True"))]


async def test_what_a_killed_process_reported_as_spent_is_spent(tmp_path: Path) -> None:
    """docs/reliability.md: on SQLite a spent thing stays spent through process death."""
    with program(tmp_path / "corpid.db", REPORTER) as spending:
        assert spending.stdout is not None
        reported = [int(spending.stdout.readline()) for _ in range(500)]
        spending.send_signal(signal.SIGKILL)
        reported += [int(line) for line in spending.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    assert spending.returncode == -signal.SIGKILL

    async def spent_again() -> list[int]:
        async with sqlite(tmp_path) as stores, stores.transient.batch(NOW) as batch:
            return [number for number in reported if await batch.add("jti", number.to_bytes(32), 60)]

    assert await spent_again() == []
    connection = sqlite3.connect(tmp_path / "corpid.db")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


async def test_requests_are_answered_while_another_process_writes_a_large_file(tmp_path: Path) -> None:
    """`corpid apply` writes in short transactions with gaps between them."""

    async def scenario() -> int:
        async with sqlite(tmp_path) as stores:
            bulk = program(tmp_path / "corpid.db", BULK_WRITER)
            assert bulk.stdout is not None
            assert bulk.stdin is not None
            assert await asyncio.to_thread(bulk.stdout.readline) == "ready\n"
            bulk.stdin.write("go\n")
            bulk.stdin.flush()
            answered = 0
            while bulk.poll() is None:
                async with stores.transient.batch(NOW) as batch:
                    answered += await batch.add("jti", answered.to_bytes(32), 60)
                await asyncio.sleep(0.005)
            assert bulk.communicate()[0] == "written\n"
            return answered

    assert await scenario() > 20


async def test_a_store_that_stays_busy_says_so_while_the_loop_goes_on(tmp_path: Path) -> None:
    """`temporarily_unavailable`; a look needs no lock and is answered meanwhile."""

    async def spend(stores: SqlStores, key: bytes) -> bool:
        async with stores.transient.batch(NOW) as batch:
            return await batch.add("jti", key, 60)

    async with sqlite(tmp_path) as stores:
        holder = sqlite3.connect(tmp_path / "corpid.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        waiting = asyncio.gather(*(spend(stores, bytes([n])) for n in range(3)), return_exceptions=True)
        await asyncio.sleep(0)
        while not waiting.done():
            assert await stores.transient.get("jti", b"k", now=NOW) is None
            await asyncio.sleep(BUSY_SECONDS / 20)
        outcomes = await waiting
        assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 3
        assert "corpid.db" in str(outcomes[0])
        holder.execute("ROLLBACK")
        holder.close()
        assert await spend(stores, b"k")


async def test_a_full_disk_makes_the_store_unavailable_and_changes_nothing(tmp_path: Path) -> None:
    """A write that failed is no half write."""
    async with sqlite(tmp_path) as stores:
        limit = Statement(sa.text("PRAGMA max_page_count = 1"))
        await stores.database.rows(limit, {})
        big = Entity(entity_id="E1", type="UEN", registration_number="1", country="SG", name="x" * 100_000)
        with pytest.raises(StoreUnavailable, match="full"):
            await stores.registry.directory.write([Change(None, big)], EVENT)
        assert await stores.registry.directory.read(Entity, [("E1",)]) == {}
        assert await stores.registry.audit.entries() == []


async def test_the_write_ahead_log_does_not_outlive_a_clean_close(tmp_path: Path) -> None:
    async with sqlite(tmp_path) as stores, stores.transient.batch(NOW) as batch:
        await batch.put("code", b"k", bytes(100_000), 60)
    assert not (tmp_path / "corpid.db-wal").exists()
    assert (tmp_path / "corpid.db").stat().st_mode & 0o777 == 0o600


async def test_the_write_ahead_log_starts_anew_under_steady_writing(tmp_path: Path) -> None:
    """Checkpoints run beside the requests and catch up with them."""

    def times_started() -> int:
        with (tmp_path / "corpid.db-wal").open("rb") as log:
            return int.from_bytes(log.read(16)[12:])

    async with sqlite(tmp_path) as stores:
        checkpoints = Checkpoints(tmp_path / "corpid.db", pages=50, most_pages=200)
        for number in range(20_000):
            async with stores.transient.batch(NOW) as batch:
                await batch.put("code", number.to_bytes(32), bytes(5000), 60)
            checkpoints.nudge()
            if times_started() >= 2:
                break
        checkpoints.check()
        await asyncio.to_thread(checkpoints.stop)
        assert number < 19_999


def test_a_checkpoint_that_fails_is_told(tmp_path: Path) -> None:
    """`/readyz` turns red before the disk is full to the last byte."""
    (told,) = race(tmp_path / "corpid.db", DISK_WITHOUT_ROOM, processes=1)
    assert told.startswith(f"{tmp_path / 'corpid.db'}: ")
