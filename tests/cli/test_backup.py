"""`corpid backup` and `corpid restore`: a copy while people sign in, and a way back on which nothing spent returns."""

from __future__ import annotations

import asyncio
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from corpid.engines import Stores, at_command_line
from corpid.rules.limits import CLOCK_AHEAD_SECONDS
from tests.cli.conftest import Terminal, at
from tests.faults.serving import Deployment, chosen, deployment, outside
from tests.machine import key_file
from tests.protocol.provider import World
from tests.web.processes import command
from tests.world.clock import Clock

if TYPE_CHECKING:
    from pathlib import Path

    from corpid.rules.audit import AuditEntry
    from corpid_dev.relying_party.relying_party import RelyingParty

BELIEVED = CLOCK_AHEAD_SECONDS + 5
"""seconds after a restore in which new proofs are believed, while a code of before would still be alive"""


async def events(stores: Stores) -> list[AuditEntry]:
    return await stores.registry.audit.entries()


def sqlite(path: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement).fetchall()


def database(terminal: Terminal) -> Path:
    return terminal.folder / "data" / "corpid.sqlite"


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with one person, a backup of it, and a second person who came later."""
    folder = tmp_path_factory.mktemp("originals")
    with at(folder) as terminal:
        terminal.done("user", "add", "first.person", "--name", "First Person", "--with-factors")
        terminal.done("backup", "copy.corpid")
        terminal.done("user", "add", "second.person", "--name", "Second Person", "--with-factors")
    return folder


@pytest.fixture
def backed_up(originals: Path, terminal: Terminal) -> Terminal:
    """The originals, copied for one test."""
    shutil.copytree(originals, terminal.folder, dirs_exist_ok=True)
    return terminal


async def _back_up_under_load(made: Deployment, folder: Path) -> tuple[RelyingParty, str, int]:
    """Take a backup while relying parties push and redeem; one with a code that the backup holds unspent and that
    was redeemed after it, and how many others were redeemed meanwhile."""
    async with outside(made) as person:
        late = person.party()
        code = await person.code(late)
        spent: list[str] = []

        async def work() -> None:
            while True:
                rp = person.party()
                code = await person.code(rp)
                answer = await rp.token(code)
                assert answer.status_code == 200, answer.text
                spent.append(code)

        workers = [asyncio.create_task(work()) for _ in range(4)]
        while not spent:  # noqa: ASYNC110 - several tasks may be the first
            await asyncio.sleep(0.001)
        before = len(spent)
        done = await asyncio.to_thread(
            command, folder, "backup", "copy.corpid", data_dir=str(made.data_dir), base_url=made.issuer
        )
        during = len(spent) - before
        assert not any(worker.done() for worker in workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        assert (await late.token(code)).status_code == 200
    assert done.returncode == 0, done.stderr
    return late, code, during


@pytest.mark.full
def test_a_backup_taken_under_load_is_restored_and_people_sign_in_again(tmp_path: Path) -> None:
    """Nobody who signs in notices; afterwards nothing that was spent, and no session, is there again."""
    data = tmp_path / "data"
    with deployment(data, processes=2) as made:
        late, code, during = asyncio.run(_back_up_under_load(made, tmp_path))
        assert during, "nobody was served while the backup was taken"
        assert sqlite(tmp_path / "copy.corpid", "PRAGMA integrity_check") == [("ok",)]
        running = command(tmp_path, "restore", "copy.corpid", data_dir=str(data), base_url=made.issuer)
        assert (running.returncode, "stop every one of them" in running.stderr) == (1, True), running.stderr
        issuer = made.issuer
    done = command(tmp_path, "restore", "copy.corpid", data_dir=str(data), base_url=issuer)
    assert done.returncode == 0, done.stderr
    assert sqlite(data / "corpid.sqlite", "SELECT count(*) FROM sessions") == [(0,)]
    assert sqlite(data / "corpid.sqlite", "SELECT count(*) FROM transient") == [(0,)]
    options = chosen(data, issuer)
    del options["data_dir"], options["base_url"]
    with World(at=data, clock=Clock(time.time() + BELIEVED), base_url=issuer, **options) as world:
        late.http, late.clock = world.http, world.clock
        again = world.run(late.token(code))
        assert (again.status_code, again.json()["error"]) == (400, "invalid_grant"), again.text
        world.run(world.rp.redeem(world.sign_in()))


def test_a_code_of_an_authenticator_that_may_have_been_spent_after_the_backup_is_spent(backed_up: Terminal) -> None:
    """D45: the last accepted step of the backup is older than what was accepted since."""
    backed_up.done("restore", "copy.corpid")
    [(step,)] = sqlite(database(backed_up), "SELECT min(totp_last_step) FROM credentials")
    assert isinstance(step, int)
    assert step >= time.time() // 30


def test_a_backup_is_one_private_file_and_says_where_the_key_lies(terminal: Terminal) -> None:
    terminal.done("key", "list")
    result = terminal.run("backup", "copy.corpid")
    assert result.exit_code == 0, result.output
    assert "The key-encryption key is not in it" in result.stderr
    assert str(terminal.folder / "data" / "sealing.key") in result.stderr
    copy = terminal.folder / "copy.corpid"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert [path.name for path in terminal.folder.glob("*corpid*")] == ["copy.corpid"]
    key = (terminal.folder / "data" / "sealing.key").read_bytes().strip()
    assert key not in copy.read_bytes()


def test_a_backup_names_the_key_of_the_settings(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    file = key_file(terminal.folder / "own.key")
    monkeypatch.setenv("CORPID_KEY_ENCRYPTION_KEY_FILE", file)
    terminal.done("key", "list")
    assert file in terminal.run("backup", "one.corpid").stderr
    monkeypatch.delenv("CORPID_KEY_ENCRYPTION_KEY_FILE")
    monkeypatch.setenv("CORPID_KEY_ENCRYPTION_KEY", (terminal.folder / "own.key").read_text())
    assert "CORPID_KEY_ENCRYPTION_KEY" in terminal.run("backup", "two.corpid").stderr


def test_a_backup_replaces_no_file_and_leaves_none_behind(backed_up: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (backed_up.folder / "copy.corpid").read_bytes()
    assert "exists already" in backed_up.refused("backup", "copy.corpid")
    assert (backed_up.folder / "copy.corpid").read_bytes() == before
    assert "cannot be written" in backed_up.refused("backup", "nowhere/copy.corpid")
    monkeypatch.setenv("CORPID_DATA_DIR", str(backed_up.folder / "empty"))
    assert "there is no database" in backed_up.refused("backup", "other.corpid")
    assert not (backed_up.folder / "other.corpid").exists()


def test_a_damaged_database_is_not_backed_up_as_if_it_were_whole(terminal: Terminal) -> None:
    terminal.done("user", "add", "first.person", "--name", "First Person", "--with-factors")
    _damage(database(terminal))
    assert "Error:" in terminal.refused("backup", "copy.corpid")
    assert not (terminal.folder / "copy.corpid").exists()


def test_a_restore_keeps_the_old_database_and_tells_the_audit_table(backed_up: Terminal) -> None:
    last = backed_up.look(events)[-1]
    told = backed_up.done("restore", "copy.corpid")
    found = re.search(r"kept as (\S+);", told)
    assert found is not None
    assert sqlite(backed_up.folder / "data" / found[1], "SELECT count(*) FROM users") == [(2,)]
    assert sqlite(database(backed_up), "SELECT user_name FROM users") == [("first.person",)]
    event = backed_up.look(events)[-1]
    assert (event.action, event.object, event.actor) == (
        "deployment.restore",
        "copy.corpid",
        at_command_line().name,
    )
    assert event.number > last.number, "whoever reads on from a number would miss it"
    restores = [each for each in backed_up.look(events) if each.action == event.action]
    assert restores == [event], "the restore did what follows a copy"
    assert stat.S_IMODE(database(backed_up).stat().st_mode) == 0o600


def test_a_backup_that_was_copied_over_the_database_by_hand_brings_back_nothing_that_was_spent(
    backed_up: Terminal,
) -> None:
    """docs/decisions/0028: the first process that opens it ends everything, once."""
    last, before = backed_up.look(events)[-1], time.time()
    with closing(sqlite3.connect(backed_up.folder / "copy.corpid", isolation_level=None)) as copy:
        copy.execute(
            "INSERT INTO transient (kind, key, value, count, expires_at) VALUES ('code', x'00', x'00', 0, 1e15)"
        )
    shutil.copy(backed_up.folder / "copy.corpid", database(backed_up))
    backed_up.done("user", "list")
    backed_up.done("user", "list")
    assert sqlite(database(backed_up), "SELECT count(*) FROM transient") == [(0,)]
    [(moment,)] = sqlite(database(backed_up), "SELECT value FROM deployment WHERE name = 'forgotten_at'")
    assert float(str(moment)) >= before
    [restored] = [event for event in backed_up.look(events) if event.action == "deployment.restore"]
    assert (restored.actor, restored.object) == ("system", "copy of a backup")
    assert restored.number > last.number, "whoever reads on from a number would miss it"


def test_a_restore_works_where_there_is_no_database_any_more(backed_up: Terminal) -> None:
    database(backed_up).unlink()
    assert "kept as" not in backed_up.done("restore", "copy.corpid")
    assert sqlite(database(backed_up), "SELECT count(*) FROM users") == [(1,)]


def test_a_restore_replaces_a_database_that_is_broken(backed_up: Terminal) -> None:
    """Which is what it is for; the broken one is kept, too."""
    database(backed_up).write_bytes(b"nothing that SQLite knows" * 1000)
    assert "kept as" in backed_up.done("restore", "copy.corpid")
    assert sqlite(database(backed_up), "SELECT count(*) FROM users") == [(1,)]


def test_a_restore_is_refused_while_anything_has_the_database_open(backed_up: Terminal) -> None:
    """SQLite itself knows, also of a program that is none of ours."""
    with closing(sqlite3.connect(database(backed_up), isolation_level=None)) as other:
        other.execute("SELECT count(*) FROM users").fetchone()
        assert "stop every one of them" in backed_up.refused("restore", "copy.corpid")
    assert sqlite(database(backed_up), "SELECT count(*) FROM users") == [(2,)]


def test_nothing_opens_a_database_while_it_is_being_restored(backed_up: Terminal) -> None:
    program = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print(1, flush=True); input()"
    lock = database(backed_up).with_name("corpid.sqlite.lock")
    with subprocess.Popen(
        [sys.executable, "-c", program, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holding:
        assert holding.stdout is not None
        holding.stdout.readline()
        assert "is being restored" in backed_up.refused("key", "list")
        holding.communicate("\n")
    backed_up.done("key", "list")


def test_what_is_no_backup_is_refused(backed_up: Terminal) -> None:
    (backed_up.folder / "text.corpid").write_text("not a database " * 100, encoding="utf-8")
    sqlite(backed_up.folder / "other.corpid", "CREATE TABLE things (name TEXT)")
    shutil.copy(backed_up.folder / "copy.corpid", backed_up.folder / "damaged.corpid")
    _damage(backed_up.folder / "damaged.corpid")
    for name, reason in (
        ("missing.corpid", "there is no file"),
        ("text.corpid", "is no backup of a CorpID database"),
        ("other.corpid", "is no backup of a CorpID database"),
        ("damaged.corpid", "damaged"),
    ):
        assert reason in backed_up.refused("restore", name), name
    assert sqlite(database(backed_up), "SELECT count(*) FROM users") == [(2,)]
    assert sorted(path.name for path in (backed_up.folder / "data").glob(".*")) == []


def test_a_backup_of_a_newer_corpid_is_refused(backed_up: Terminal) -> None:
    for statement in (
        "UPDATE alembic_version SET version_num = '9999'",
        "UPDATE deployment SET value = '9999' WHERE name = 'schema_serves_since'",
    ):
        sqlite(backed_up.folder / "copy.corpid", statement)
    assert "written by a newer CorpID" in backed_up.refused("restore", "copy.corpid")
    assert sqlite(database(backed_up), "SELECT count(*) FROM users") == [(2,)]


def test_a_backup_whose_key_is_another_one_is_refused(backed_up: Terminal) -> None:
    key = backed_up.folder / "data" / "sealing.key"
    right = key.read_bytes()
    key.unlink()
    assert "put the sealing.key that belongs to the backup" in backed_up.refused("restore", "copy.corpid")
    assert not key.exists(), "a new key would stand in the way of the right one"
    key_file(key)
    assert "key-encryption key of the settings is not the one" in backed_up.refused("restore", "copy.corpid")
    key.write_bytes(right)
    assert sqlite(database(backed_up), "SELECT count(*) FROM users") == [(2,)]


def test_with_postgresql_both_point_to_its_own_programs(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPID_DATABASE_URL", "postgresql://corpid@localhost/corpid")
    for name in ("backup", "restore"):
        assert "pg_dump and pg_restore" in terminal.refused(name, "copy.corpid")


def _damage(path: Path) -> None:
    """Pages in the middle become noise; the first one, which says what the file is, stays."""
    with path.open("r+b") as file:
        size = path.stat().st_size
        file.seek(8192)
        file.write(b"\xa5" * (size - 8192))
