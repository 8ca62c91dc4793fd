"""The client of the admin API in `examples/`, on a stock library and over real sockets (D59, docs/api.md)."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from corpid.rules.limits import BODY_BYTES
from tests import quick_start
from tests.interop.examples import EXAMPLES
from tests.interop.running import PATIENCE, provider
from tests.interop.running import Provider as Running

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.full

ADMINISTER = EXAMPLES / "python" / "administer.py"


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.full)], ids=["", "nonces"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with provider(tmp_path_factory.mktemp("provider"), dpop_nonces=request.param) as one:
        yield one


def administer(running: Running, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ADMINISTER, *arguments],
        cwd=folder, env={**os.environ, "ISSUER": running.issuer, **environment},
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip


def corpid(running: Running, folder: Path, command: str) -> None:
    """Run a command of the operator against the running provider's directory."""
    settings = {
        "CORPID_DATA_DIR": str(running.data_dir),
        "CORPID_BASE_URL": running.issuer,
        "CORPID_DEVELOPER_MODE": "true",
    }
    words = shlex.split(command)
    done = quick_start.run(
        (Path(sys.executable).with_name("corpid"), *words),
        env={**os.environ, **settings}, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_newcomer_follows_the_printed_command_and_gets_a_token(running: Running, tmp_path: Path) -> None:
    """docs/api.md: run it, register what it prints, run it again."""
    first = administer(running, tmp_path)
    (command,) = re.findall(r"^  corpid (client add .*)$", first.stderr, re.MULTILINE)
    assert (tmp_path / "administrator.json").stat().st_mode & 0o777 == 0o600
    assert '"d"' not in (tmp_path / "administrator.json.public").read_text()
    corpid(running, tmp_path, command)
    again = administer(running, tmp_path, "entities/209900042K")
    assert again.stderr.startswith("DPoP token for directory.read directory.write, until "), again.stderr
    assert (again.returncode, json.loads(again.stdout)["id"]) == (0, "209900042K"), again.stdout
    refused = administer(running, tmp_path, SCOPE="operations")
    assert "InvalidScope" in refused.stderr


def test_a_colleague_is_given_a_role_and_its_last_day_is_moved(running: Running, tmp_path: Path) -> None:
    """docs/api.md, "Use it"."""
    first = administer(running, tmp_path, CLIENT_ID="giver")
    (command,) = re.findall(r"^  corpid (client add .*)$", first.stderr, re.MULTILINE)
    corpid(running, tmp_path, command)
    name = next(running.people).user_name
    given = ("give", name, "209900042K", "HARBOUR-PERMIT")
    for day in ("2027-12-31", "2028-12-31"):
        done = administer(running, tmp_path, *given, "Applicant", day, CLIENT_ID="giver")
        assert done.stdout == f"{name} is Applicant at HARBOUR-PERMIT for 209900042K, until {day}\n", done.stderr
    wrong = administer(running, tmp_path, *given, "Aplicant", CLIENT_ID="giver")
    assert wrong.returncode == 1
    assert "/role: " in wrong.stderr
    assert "did you mean 'Applicant'?" in wrong.stderr


def test_a_body_that_is_too_large_is_413(running: Running) -> None:
    """D47: as at every endpoint, before anybody has authenticated."""
    answer = httpx.post(
        f"{running.issuer}/api/token", content=b"a" * (BODY_BYTES + 1),
        headers={"Content-Type": "application/x-www-form-urlencoded"}, trust_env=False,
    )  # fmt: skip
    assert (answer.status_code, answer.json()["error"]) == (413, "invalid_request")
