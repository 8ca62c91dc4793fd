"""What starts workers: it hears when to stop at any moment, and no end of its own or of a worker goes unnoticed."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from corpid.serving import METRICS_VARIABLE, metrics_folder
from tests import quick_start
from tests.web.served import PATIENCE, PROCESS_SECONDS
from tests.web.test_workers import events, until, workers_of, working

pytestmark = pytest.mark.full

PROGRAM = """
import os, signal, sys, time
from corpid.serving import supervise
from corpid.web.telemetry import access_log

def is_first():
    try:
        os.close(os.open("first", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True

def work(served, place):
    {work}
    signal.pause()

access_log.configure(clock=time.time)
status = supervise(work, {count})
print('{{"event": "ended", "status": %d}}' % status, flush=True)
"""


def supervised(directory: Path, count: int, work: str) -> list[dict[str, Any]]:
    """What was told by workers of our own and whoever started them, once all have ended."""
    program = PROGRAM.format(work="\n    ".join(work.splitlines()), count=count)
    done = quick_start.run(
        [sys.executable, "-c", program],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=PROCESS_SECONDS,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_told_to_stop_while_workers_are_still_being_started_all_of_them_stop(tmp_path: Path) -> None:
    """Those that were not yet there when the signal came, too."""
    told = supervised(tmp_path, 40, "if is_first():\n    os.kill(os.getppid(), signal.SIGTERM)")
    assert told[-1] == {"event": "ended", "status": 0}


def test_an_error_that_nobody_foresaw_is_told_and_ends_only_the_worker_that_had_it(tmp_path: Path) -> None:
    work = """
if is_first():
    raise RuntimeError("the event loop broke")
if os.path.exists("first"):
    time.sleep(2)
    os.kill(os.getppid(), signal.SIGTERM)
"""
    told = supervised(tmp_path, 2, work)
    [broken] = [line for line in told if line["event"] == "worker_broken"]
    assert broken["exception"].startswith("RuntimeError < ")
    [died] = [line for line in told if line["event"] == "worker_died"]
    assert "status 70; another takes its place" in died["detail"]


def test_one_that_has_served_is_replaced_however_it_ends(tmp_path: Path) -> None:
    """Only before that does its refusal mean that none can start."""
    work = """
if is_first():
    served()
    os._exit(1)
time.sleep(2)
os.kill(os.getppid(), signal.SIGTERM)
"""
    told = supervised(tmp_path, 2, work)
    assert [line["event"] for line in told] == ["worker_died", "ended"]
    assert told[-1]["status"] == 0


def test_when_whoever_started_them_is_killed_workers_stop_by_themselves(tmp_path: Path) -> None:
    with working(tmp_path, 2) as (process, _):
        until(lambda: events(tmp_path, "listening") == 2)
        workers = workers_of(process)
        process.kill()
        process.wait(PATIENCE)
        until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    assert events(tmp_path, "stopped") == 2


def test_a_terminal_that_closes_stops_all(tmp_path: Path) -> None:
    with working(tmp_path, 2) as (process, _):
        until(lambda: events(tmp_path, "listening") == 2)
        for told in (*workers_of(process), process.pid):
            os.kill(told, signal.SIGHUP)
        assert process.wait(PROCESS_SECONDS) == 0
    assert events(tmp_path, "stopped") == 2


def test_folders_of_metrics_that_a_killed_process_left_are_removed_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv(METRICS_VARIABLE, "")
    left, used, foreign, new = (tmp_path / f"corpid-metrics-{name}" for name in ("left", "used", "foreign", "new"))
    for folder in (left, used, foreign, new):
        folder.mkdir()
        if folder is not foreign:
            (folder / "lock").touch()
    for folder in (left, used, foreign):
        os.utime(folder, (0, 0))
    with closing((used / "lock").open()) as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        with metrics_folder():
            found = {path for path in (left, used, foreign, new) if path.exists()}
    assert found == {used, foreign, new}
