"""`corpid backup` and `corpid restore`: whose the files are, what is wrong in them, and where they lie."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sqlite3
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_backup import backed_up, database, originals, sqlite

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal

__all__ = ["backed_up", "originals"]


def test_restored_by_root_a_database_belongs_to_the_service_again(backed_up: Terminal) -> None:
    """Its owner and mode are those of the database that was there, or else the folder's owner."""
    service, data = os.getuid() or 4711, database(backed_up).parent  # only root gives files away
    for path in (data, *data.iterdir()):
        os.chown(path, service, -1)
    database(backed_up).chmod(0o640)
    backed_up.done("restore", "copy.corpid")
    assert stat.S_IMODE(database(backed_up).stat().st_mode) == 0o640
    shutil.rmtree(data / "short-lived")
    for path in data.iterdir():
        path.unlink() if path.name != "sealing.key" else None
    backed_up.done("restore", "copy.corpid")
    assert {(path.name, path.stat().st_uid) for path in data.iterdir()} == {
        (name, service) for name in ("corpid.sqlite", "corpid.sqlite.lock", "migrate.lock", "sealing.key")
    }


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM alembic_version",
        "INSERT INTO alembic_version (version_num) VALUES ('0001')",
        "UPDATE alembic_version SET version_num = 'nothing'",
        "UPDATE deployment SET value = 'a while ago' WHERE name LIKE '%start'",
        "UPDATE deployment SET value = 'a while ago' WHERE name = 'forgotten_at'",
        "UPDATE deployment SET value = 'a while ago'",
        "DROP TABLE deployment",
        "DROP TABLE audit",
        "DROP TABLE signing_keys",
    ],
)
def test_a_backup_with_something_broken_inside_is_refused_in_a_sentence(backed_up: Terminal, statement: str) -> None:
    with suppress(sqlite3.OperationalError):
        sqlite(backed_up.folder / "copy.corpid", statement)
    done = backed_up.run("restore", "copy.corpid")
    if done.exit_code:
        assert isinstance(done.exception, SystemExit), done.exception
        assert (done.exit_code, done.stderr[:6]) == (1, "Error:")
        assert sqlite(database(backed_up), "SELECT count(*) FROM users") == [(2,)]


def test_a_name_that_is_too_long_is_told(backed_up: Terminal) -> None:
    assert "name too long" in backed_up.refused("backup", "x" * 300)
    assert "name too long" in backed_up.refused("restore", "x" * 300)


def test_a_file_system_without_second_names_is_enough(backed_up: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shared folders of other systems, memory cards."""

    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    backed_up.done("backup", "again.corpid")
    assert stat.S_IMODE((backed_up.folder / "again.corpid").stat().st_mode) == 0o600
    found = re.search(r"kept as (\S+);", backed_up.done("restore", "copy.corpid"))
    assert found is not None
    assert sqlite(backed_up.folder / "data" / found[1], "SELECT count(*) FROM users") == [(2,)]
    assert sqlite(database(backed_up), "SELECT count(*) FROM users") == [(1,)]
