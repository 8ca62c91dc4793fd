"""`corpid serve --workers N`: several processes on one port, started, replaced and stopped together."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests import quick_start
from tests.machine import free_port
from tests.web.processes import environment
from tests.web.served import PROCESS_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.full


@contextmanager
def working(directory: Path, count: int, **settings: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    port = free_port()
    chosen = {"port": str(port), "base_url": f"http://localhost:{port}", "hashing_threads": "1", **settings}
    log = directory / "serve.log"
    with (
        log.open("w") as said,
        quick_start.Popen(
            [sys.executable, "-m", "corpid", "serve", "--workers", str(count)],
            cwd=directory, env=environment(chosen), stdout=said, stderr=subprocess.STDOUT, text=True,
        ) as process,
    ):  # fmt: skip
        try:
            yield process, f"http://localhost:{port}"
        finally:
            process.kill()


def told(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "serve.log").read_text().splitlines()]


def events(directory: Path, event: str) -> int:
    return sum(line["event"] == event for line in told(directory))


def until(holds: Any) -> None:
    end = time.monotonic() + PROCESS_SECONDS
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children]


def test_they_answer_on_one_port_under_ids_of_their_own_and_stop_together(tmp_path: Path) -> None:
    """Many processes; D28: a reference finds one line, whichever process wrote it."""
    with working(tmp_path, 3) as (process, url):
        until(lambda: events(tmp_path, "listening") == 3)
        for _ in range(60):
            with httpx.Client(trust_env=False) as http:
                assert http.get(f"{url}/readyz").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(PROCESS_SECONDS) == 0
    requests = [line["request_id"] for line in told(tmp_path) if line["event"] == "request"]
    assert len(set(requests)) == len(requests) == 60
    assert events(tmp_path, "stopped") == 3
    listening = [line["detail"] for line in told(tmp_path) if line["event"] == "listening"]
    assert len(set(listening)) == 3, "each says which process it is"


def test_one_that_is_killed_is_replaced(tmp_path: Path) -> None:
    """`kill -9` of one worker."""
    with working(tmp_path, 2) as (process, url):
        until(lambda: events(tmp_path, "listening") == 2)
        killed = workers_of(process)[0]
        os.kill(killed, signal.SIGKILL)
        until(lambda: events(tmp_path, "listening") == 3)
        assert killed not in workers_of(process)
        assert len(workers_of(process)) == 2
        assert httpx.get(f"{url}/readyz", trust_env=False).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(PROCESS_SECONDS) == 0
    assert events(tmp_path, "worker_died") == 1


def test_where_one_cannot_start_none_does_and_the_sentence_is_told(tmp_path: Path) -> None:
    """A setting that only a start finds wrong ends the whole command."""
    with working(tmp_path, 4, key_encryption_key="AAAA") as (process, _):
        assert process.wait(PROCESS_SECONDS) == 1
    assert (tmp_path / "serve.log").read_text().count("Error: CORPID_KEY_ENCRYPTION_KEY") == 1, "once, not per worker"


def test_a_port_that_is_taken_is_told_before_any_worker_starts(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        with working(tmp_path, 2, port=port) as (process, _):
            assert process.wait(PROCESS_SECONDS) == 1
    assert f"port {port} on 127.0.0.1 is taken" in (tmp_path / "serve.log").read_text()


def test_a_setting_that_is_not_safe_is_logged_once_at_the_start(tmp_path: Path) -> None:
    """D52: not by each worker."""
    with working(tmp_path, 2, base_url="http://idp.example", trusted_proxies="10.0.0.1") as (process, _):
        until(lambda: events(tmp_path, "listening") == 2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PROCESS_SECONDS) == 0
    [line] = [line for line in told(tmp_path) if line["event"] == "settings_problem"]
    assert line["level"] == "warning"
    assert "base_url is http: codes and tokens are sent unencrypted." in line["detail"]
