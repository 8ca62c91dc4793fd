"""deploy/corpid-dump on a real PostgreSQL."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests import engines
from tests.house.source import ROOT

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = ROOT / "deploy" / "corpid-dump"
DAY = 86_400


def dump(directory: Path, url: str) -> subprocess.CompletedProcess[str]:
    """Run the script as its unit does."""
    engines._required(shutil.which("pg_dump"), "PostgreSQL's programs")
    parts = urlsplit(url)
    named = {
        "PGHOST": parts.hostname or "",
        "PGPORT": str(parts.port),
        "PGUSER": parts.username or "",
        "PGDATABASE": parts.path[1:],
    }
    command = [str(SCRIPT), str(directory), "14"]
    return subprocess.run(command, env={**os.environ, **named}, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """A directory with two earlier dumps and a file of somebody else's."""
    for name, days in (("corpid-old.dump", 20), ("corpid-recent.dump", 2), ("notes.txt", 400)):
        (tmp_path / name).write_text("earlier")
        then = time.time() - days * DAY
        os.utime(tmp_path / name, (then, then))
    return tmp_path


def test_a_dump_can_be_restored_and_only_old_ones_are_removed(dumps: Path) -> None:
    """docs/reliability.md, "Backups"."""
    server = engines.postgresql_server()
    with server.migrated() as name, server.database() as restored:
        done = dump(dumps, server.dsn(name))
        assert done.returncode == 0, done.stderr
        [made] = {path.name for path in dumps.iterdir()} - {"corpid-recent.dump", "notes.txt"}
        assert stat.S_IMODE((dumps / made).stat().st_mode) == 0o600
        target = f"--dbname={server.dsn(restored)}"
        command = ["pg_restore", "--exit-on-error", "--no-owner", target, str(dumps / made)]
        subprocess.run(command, check=True, timeout=60)
        count = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'"
        assert server.sql(count, restored) == server.sql(count, name) != "0"


def test_a_dump_that_fails_leaves_the_earlier_ones_and_no_file(dumps: Path) -> None:
    before = sorted(dumps.iterdir())
    done = dump(dumps, engines.postgresql_server().dsn("no_such_database"))
    assert done.returncode != 0
    assert "no_such_database" in done.stderr
    assert sorted(dumps.iterdir()) == before
