"""The systemd units, by systemd's own tool."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests import engines
from tests.house.source import ROOT

if TYPE_CHECKING:
    from pathlib import Path

DEPLOY = ROOT / "deploy"
SERVICES = sorted(path.name for path in DEPLOY.glob("*.service"))
TIMERS = sorted(path.name for path in DEPLOY.glob("*.timer"))
MOST_EXPOSED = 2.0
"""of 10, by systemd's count"""


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = engines._required(shutil.which("systemd-analyze"), "systemd-analyze")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All units, with a program that exists here in the place of the installed ones."""
    directory = tmp_path_factory.mktemp("units")
    for name in (*SERVICES, *TIMERS):
        text = re.sub(r"(?m)^ExecStart=\S+", f"ExecStart={sys.executable}", (DEPLOY / name).read_text(encoding="utf-8"))
        (directory / name).write_text(text, encoding="utf-8")
    return directory


def test_every_timer_starts_a_service_that_is_there() -> None:
    assert [f"corpid-{name}.timer" for name in ("doctor", "dump", "prune")] == TIMERS
    assert sorted(["corpid.service", *(name.replace(".timer", ".service") for name in TIMERS)]) == SERVICES


@pytest.mark.parametrize("name", [*SERVICES, *TIMERS])
def test_systemd_understands_every_line(units: Path, name: str) -> None:
    done = analyze("verify", "--man=no", "--recursive-errors=no", units / name)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", TIMERS)
def test_every_timer_elapses_once_a_day(name: str) -> None:
    [when] = re.findall(r"(?m)^OnCalendar=(.+)$", (DEPLOY / name).read_text(encoding="utf-8"))
    done = analyze("calendar", "--iterations=3", "--base-time=2026-01-01 00:00:00", when)
    for day in ("2026-01-01", "2026-01-02", "2026-01-03"):
        assert done.stdout.count(f" {day} ") >= 1, done.stdout


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_can_reach_little_of_the_machine(name: str) -> None:
    unit = DEPLOY / name
    done = analyze("security", "--offline=yes", "--json=short", unit)
    rows = json.loads(done.stdout)
    exposed = {row["json_field"] for row in rows if float(row["exposure"] or 0) > 0}
    assert not exposed & {
        "NoNewPrivileges",
        "UserOrDynamicUser",
        "CapabilityBoundingSet_CAP_SYS_ADMIN",
        "PrivateDevices",
    }
    assert analyze("security", "--offline=yes", f"--threshold={int(MOST_EXPOSED * 10)}", unit).returncode == 0
