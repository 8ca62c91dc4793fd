"""The systemd unit, by systemd's own tool."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from tests import engines
from tests.house.source import ROOT

if TYPE_CHECKING:
    from pathlib import Path

UNIT = ROOT / "deploy" / "corpid.service"
MOST_EXPOSED = 2.0
"""of 10, by systemd's count"""


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = engines._required(shutil.which("systemd-analyze"), "systemd-analyze")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=60)


def test_systemd_understands_every_line(tmp_path: Path) -> None:
    """With a program that exists here in the place of the installed one."""
    unit = tmp_path / UNIT.name
    unit.write_text(re.sub(r"(?m)^ExecStart=\S+", f"ExecStart={sys.executable}", UNIT.read_text()), encoding="utf-8")
    done = analyze("verify", "--man=no", "--recursive-errors=no", unit)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_service_can_reach_little_of_the_machine() -> None:
    done = analyze("security", "--offline=yes", "--json=short", UNIT)
    rows = json.loads(done.stdout)
    exposed = {row["json_field"] for row in rows if float(row["exposure"] or 0) > 0}
    assert not exposed & {
        "NoNewPrivileges",
        "UserOrDynamicUser",
        "CapabilityBoundingSet_CAP_SYS_ADMIN",
        "PrivateDevices",
    }
    assert analyze("security", "--offline=yes", f"--threshold={int(MOST_EXPOSED * 10)}", UNIT).returncode == 0
