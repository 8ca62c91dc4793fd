"""Short-lived data in an LMDB file: what the file itself promises (docs/decisions/0032)."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import signal
import sqlite3
import time
from contextlib import ExitStack, closing, contextmanager
from typing import IO, TYPE_CHECKING, Any, Final

import pytest

from corpid import engines, settings
from corpid.rules.failures import StoreUnavailable
from corpid.stores import machine_start
from corpid.stores.lmdb import LmdbEngine, LmdbTransientStore, open_shared, release
from tests.adapters.opened import NOW, lmdb_transient, lmdb_url, program, race
from tests.adapters.transient_stores import KEY, add, put, take

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from corpid.stores.transient import TransientStore

KIB: Final = b"x" * 1024
EARLIER: Final = "00000000-0000-4000-8000-000000000000"
"""a boot id"""
PROCESSES: Final = 4
ENTRIES: Final = 2000

WRITER: Final = f"""
import json
from corpid.stores.transient import transient_engine
from corpid.stores.valkey.incarnations import NoOrderlyStops

async def main():
    store = await transient_engine(sys.argv[1]).open(clock=time.time, stops=NoOrderlyStops())
    go()
    own = int(sys.argv[2]).to_bytes(4)
    for number in range({ENTRIES}):
        async with store.batch(NOW) as batch:
            await batch.put("code", own + number.to_bytes(28), {KIB!r}, 60)
    found = [await store.get("code", own + number.to_bytes(28), now=NOW) for number in range({ENTRIES})]
    print(json.dumps(found.count({KIB!r})))
    await store.close()
asyncio.run(main())
"""

SPENDING: Final = """
from corpid.stores.transient import transient_engine
from corpid.stores.valkey.incarnations import NoOrderlyStops

async def main():
    store = await transient_engine(sys.argv[1]).open(clock=time.time, stops=NoOrderlyStops())
    go()
    number = 0
    while True:
        async with store.batch(NOW) as batch:
            if await batch.add("proof", number.to_bytes(32), 600):
                sys.stdout.write(f"{number}\\n")
                sys.stdout.flush()
        number += 1
asyncio.run(main())
"""


def data_files(path: Path) -> list[Path]:
    return sorted((path / "short-lived").glob("*.mdb"))


async def store_identity(store: LmdbTransientStore) -> str:
    return store.file.store_identity


async def test_what_was_spent_stays_spent_in_the_next_opening_of_the_same_data(tmp_path: Path) -> None:
    """docs/reliability.md: CorpID is restarted."""
    async with lmdb_transient(tmp_path) as store:
        before = await store_identity(store)
    async with lmdb_transient(tmp_path) as store:
        assert await add(store)
    async with lmdb_transient(tmp_path) as store:
        assert not await add(store)
    async with lmdb_transient(tmp_path) as store:
        assert await store_identity(store) == before


async def test_a_file_of_an_earlier_start_of_the_machine_is_removed_unread(tmp_path: Path) -> None:
    """A power loss may have damaged it; opening it would end the process."""
    async with lmdb_transient(tmp_path) as store:
        before = await store_identity(store)
    async with lmdb_transient(tmp_path) as store:
        assert await add(store)
    (file,) = data_files(tmp_path)
    earlier = file.rename(file.with_name(f"{EARLIER}.mdb"))
    earlier.write_bytes(earlier.read_bytes()[:4096] + os.urandom(1 << 20))
    async with lmdb_transient(tmp_path) as store:
        assert await store_identity(store) != before
    async with lmdb_transient(tmp_path) as store:
        assert await add(store)
    assert data_files(tmp_path) == [file]


async def test_nothing_else_in_the_directory_is_touched(tmp_path: Path) -> None:
    """Somebody may name a directory that holds other things, such as data_dir."""
    folder = tmp_path / "short-lived"
    (folder / "a folder").mkdir(parents=True)
    others = ("corpid.sqlite", "sealing.key", "mine.mdb", f"{EARLIER}.mdb.old")
    for name in others:
        (folder / name).write_text(name)
    (folder / f"{EARLIER}.mdb-lock").write_text("")
    async with lmdb_transient(tmp_path) as store:
        assert await add(store)
    assert all((folder / name).read_text() == name for name in others)
    assert (folder / "a folder").is_dir()
    assert not (folder / f"{EARLIER}.mdb-lock").exists()


async def test_a_copied_directory_is_other_data(tmp_path: Path) -> None:
    """What was spent since the copy must not be spent again: another store_identity, and nothing in it."""
    async with lmdb_transient(tmp_path) as store:
        await put(store, b"grant")
    shutil.copytree(tmp_path / "short-lived", tmp_path / "copy")
    async with lmdb_transient(tmp_path) as store:
        before = await store_identity(store)
    shutil.rmtree(tmp_path / "short-lived")
    (tmp_path / "copy").rename(tmp_path / "short-lived")
    async with lmdb_transient(tmp_path) as store:
        assert await store_identity(store) != before
    async with lmdb_transient(tmp_path) as store:
        assert await take(store) is None


async def test_every_block_of_the_file_is_allocated(tmp_path: Path) -> None:
    """A page without a block would end the process when the disk is full."""
    async with lmdb_transient(tmp_path) as store:
        async with store.batch(NOW) as batch:
            for number in range(ENTRIES):
                await batch.put("code", number.to_bytes(32), KIB, 60)
        found = data_files(tmp_path)[0].stat()
        assert found.st_size > ENTRIES * len(KIB)
        assert found.st_blocks * 512 >= found.st_size


@pytest.mark.full
async def test_processes_that_grow_the_file_at_once_lose_nothing(tmp_path: Path) -> None:
    """Each maps what another has added; none makes the file smaller under another's map."""
    found = [json.loads(each) for each in race(lmdb_url(tmp_path), WRITER, processes=PROCESSES)]
    assert found == [ENTRIES] * PROCESSES

    async with lmdb_transient(tmp_path) as store:
        for own in range(PROCESSES):
            for number in range(0, ENTRIES, 97):
                assert await store.get("code", own.to_bytes(4) + number.to_bytes(28), now=NOW) == KIB


@pytest.mark.full
async def test_a_process_that_starts_later_maps_the_whole_file(tmp_path: Path) -> None:
    """LMDB would cut it to the size that the newcomer asks for, under the map of the other."""
    async with lmdb_transient(tmp_path) as store:
        async with store.batch(NOW) as batch:
            for number in range(ENTRIES):
                await batch.put("code", number.to_bytes(32), KIB, 60)
                await batch.take("code", number.to_bytes(32))
        size = data_files(tmp_path)[0].stat().st_size
        done = await asyncio.to_thread(race, lmdb_url(tmp_path), WRITER, processes=1)
        assert json.loads(done[0]) == ENTRIES
        assert data_files(tmp_path)[0].stat().st_size >= size
        assert await add(store)


@contextmanager
def no_file_may_grow() -> Iterator[None]:
    """For this process the disk is full."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


async def test_a_full_disk_is_an_error_and_nothing_else(tmp_path: Path) -> None:
    """503 and unready (D49); what was written before is there, and so is the store when there is room."""

    async def fill(store: TransientStore) -> None:
        async with store.batch(NOW) as batch:
            for number in range(ENTRIES):
                await batch.put("code", number.to_bytes(32), KIB, 60)

    async with lmdb_transient(tmp_path) as store:
        await put(store, b"grant")
        with no_file_may_grow():
            with pytest.raises(StoreUnavailable, match="File too large"):
                await fill(store)
            with pytest.raises(StoreUnavailable, match="a write has just failed"):
                await store.ready(now=NOW)
            assert await take(store) == b"grant"
            assert await take(store) is None
        await fill(store)


async def test_a_store_that_cannot_be_created_says_why(tmp_path: Path) -> None:
    """A sentence for the operator, with the place."""
    (tmp_path / "short-lived").write_text("")
    with pytest.raises(StoreUnavailable, match=r"short-lived.*File exists"):
        async with lmdb_transient(tmp_path) as store:
            await store_identity(store)


@pytest.mark.parametrize("removed", ["file", "directory"])
async def test_a_file_that_is_removed_in_use_is_used_no_more(
    removed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that starts now would use another one, and neither would know what the other has spent."""
    async with lmdb_transient(tmp_path) as store:
        assert await add(store)
        for file in data_files(tmp_path):
            file.unlink()
        if removed == "directory":
            shutil.rmtree(tmp_path / "short-lived")
        store.file._looked_at -= 1
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="removed or replaced"):
                await add(store, key=KEY[::-1])
            with pytest.raises(StoreUnavailable, match="removed or replaced"):
                await store.get("jti", KEY, now=NOW)
            with pytest.raises(StoreUnavailable, match="removed or replaced"):
                await store.ready(now=NOW)


def answers(worker: subprocess.Popen[str]) -> IO[str]:
    assert worker.stdout is not None
    return worker.stdout


@pytest.mark.full
async def test_killed_processes_leave_what_they_spent_and_keep_nobody_waiting(tmp_path: Path) -> None:
    """D7, D8: kill -9 in the middle of transactions, again and again; a lock that a dead process held is released."""
    spent: list[int] = []
    for _ in range(3):
        with ExitStack() as stack:
            workers = [stack.enter_context(program(lmdb_url(tmp_path), SPENDING)) for _ in range(2)]
            try:
                for worker in workers:
                    assert answers(worker).readline() == "ready\n"
                    assert worker.stdin is not None
                    worker.stdin.write("go\n")
                    worker.stdin.flush()
                for worker in workers:
                    spent += [int(answers(worker).readline()) for _ in range(50)]
            finally:
                for worker in workers:
                    worker.send_signal(signal.SIGKILL)
            for worker in workers:
                spent += [int(line) for line in answers(worker) if line.endswith("\n")]
    assert len(spent) == len(set(spent)), "each was the first for one process"

    async with lmdb_transient(tmp_path) as store:
        for number in spent:
            async with store.batch(NOW) as batch:
                assert not await batch.add("proof", number.to_bytes(32), 600)


async def test_what_root_creates_belongs_to_the_owner_of_the_folder(tmp_path: Path) -> None:
    """A command of root opens the store before the service does."""
    service = os.getuid() or 4711  # only root gives files away
    os.chown(tmp_path, service, -1)
    async with lmdb_transient(tmp_path) as store:
        assert await add(store)
    folder = tmp_path / "short-lived"
    assert {path.stat().st_uid for path in (folder, *folder.iterdir())} == {service}


async def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    """Else the service's user could have root write anywhere."""
    async with lmdb_transient(tmp_path) as store:
        await store_identity(store)
    (file,) = data_files(tmp_path)
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreUnavailable, match="symbolic links"):
        async with lmdb_transient(tmp_path) as store:
            await store_identity(store)
    assert not (tmp_path / "elsewhere").exists()


async def test_stores_of_one_process_share_the_file_until_the_last_is_closed(tmp_path: Path) -> None:
    """A command in a server's process, and the server."""
    async with lmdb_transient(tmp_path) as store:
        async with lmdb_transient(tmp_path) as other:
            assert await add(other)
        assert not await add(store)
    async with lmdb_transient(tmp_path) as store:
        assert not await add(store)


def test_a_forked_process_never_uses_the_file_of_its_parent(tmp_path: Path) -> None:
    """Two processes with one environment would both write with the same lock."""
    parent = open_shared(tmp_path / "short-lived", machine_start())
    try:
        child = os.fork()
        if child == 0:
            try:
                open_shared(tmp_path / "short-lived", machine_start())
            except StoreUnavailable:
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        release(parent)


async def test_an_engine_that_was_not_opened_is_described(tmp_path: Path) -> None:
    """`corpid doctor` looks without making anything."""

    async def described() -> list[str]:
        return [each.seen for each in await LmdbEngine(lmdb_url(tmp_path)).describe()]

    (before,) = await described()
    assert "which the first start creates" in before
    assert not (tmp_path / "short-lived").exists()
    async with lmdb_transient(tmp_path) as store:
        await add(store)
    (after,) = await described()
    assert "1 MiB" in after


async def test_the_first_start_after_short_lived_data_was_in_sqlite_refuses_what_was_issued(tmp_path: Path) -> None:
    """D67: what the older version has spent is not in the file; the next start has lost nothing more."""
    options = settings.load(data_dir=tmp_path)

    async def started() -> tuple[float, int]:
        async with engines.open_stores(options, time.time) as opened:
            return opened.transient.loss.reject_issued_before, int(sql("SELECT count(*) FROM transient"))

    def sql(statement: str) -> str:
        with closing(sqlite3.connect(tmp_path / "corpid.sqlite", isolation_level=None)) as database:
            return str((database.execute(statement).fetchone() or ("",))[0])

    assert await started() == (0.0, 0)
    sql("UPDATE deployment SET value = 'database 0.0' WHERE name = 'store_in_use'")
    sql("INSERT INTO transient (kind, key, value, count, expires_at) VALUES ('code', x'00', x'00', 0, 9999999999999)")
    before = time.time()
    lost_at, entries = await started()
    assert (lost_at >= before, entries) == (True, 0)
    assert await started() == (lost_at, 0)


@pytest.mark.parametrize("database_url", ["postgresql://corpid@localhost/corpid", ""])
def test_only_a_database_of_the_same_machine_goes_with_it(database_url: str, tmp_path: Path) -> None:
    """Another node would not know what was spent here."""
    given: dict[str, Any] = {"transient_url": "lmdb:///tmp/somewhere", "data_dir": tmp_path}
    if not database_url:
        assert settings.load(**given).transient_url == "lmdb:///tmp/somewhere"
        return
    with pytest.raises(settings.SettingsError, match="a directory of this machine"):
        settings.load(**given, database_url=database_url)


def test_without_addresses_it_is_in_the_data_directory_and_with_one_it_is_not(tmp_path: Path) -> None:
    """A database with an address of its own keeps short-lived data, too, unless another engine is named."""
    assert settings.load(data_dir=tmp_path).transient_url == lmdb_url(tmp_path)
    assert settings.load(data_dir=tmp_path, database_url=f"sqlite:///{tmp_path}/other.db").transient_url == ""
