"""`corpid serve`: starts, says so, stops; or refuses with one sentence."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.machine import free_port
from tests.web.served import PROCESS_SECONDS, Caller

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = "import typer; from corpid.cli.serve import serve; typer.run(serve)"
COLLECTOR = "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count(), *gc.get_threshold()))"
"""what is frozen when the process ends, and the thresholds"""
WORKER = """
import gc, os, signal
from corpid.serving import supervise

def work(served, place):
    print(gc.get_freeze_count(), flush=True)
    os.kill(os.getppid(), signal.SIGTERM)
    signal.pause()

supervise(work, 1)
"""


@contextmanager
def started(directory: Path, program: str = PROGRAM, **settings: str) -> Iterator[subprocess.Popen[str]]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CORPID_")}
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=directory,
        env={**inherited, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_it_answers_until_it_is_told_to_stop(tmp_path: Path) -> None:
    port = free_port()
    settings = {"CORPID_PORT": str(port), "CORPID_BASE_URL": f"http://localhost:{port}"}
    with started(tmp_path, **settings) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        assert (first["event"], first["address"]) == ("listening", f"127.0.0.1:{port}")
        with Caller(socket.create_connection(("127.0.0.1", port), timeout=PROCESS_SECONDS)) as caller:
            answer = caller.say(b"GET /readyz?secret HTTP/1.1\r\nHost: probe\r\n\r\n").answer()
        assert (answer.status, answer.json) == (200, {"status": "ready"})
        process.send_signal(signal.SIGTERM)
        said = process.stdout.read()
        assert process.wait(PROCESS_SECONDS) == 0
        assert [json.loads(line)["event"] for line in said.splitlines()] == ["request", "draining", "stopped"]
        assert "secret" not in said


@pytest.mark.full
def test_developer_mode_serves_https_with_an_authority_of_its_own(tmp_path: Path) -> None:
    """D52: kept in data_dir for the next start; D36: without Strict-Transport-Security."""
    port = free_port()
    url = f"https://localhost:{port}"
    settings = {"CORPID_PORT": str(port), "CORPID_BASE_URL": url, "CORPID_DEVELOPER_MODE": "true"}
    authorities = []
    for _ in range(2):
        with started(tmp_path, **settings) as process:
            assert process.stdout is not None
            told = [json.loads(process.stdout.readline())]
            while told[-1]["event"] != "listening":
                told.append(json.loads(process.stdout.readline()))
            file = str(tmp_path / "data" / "tls" / "ca.crt")
            assert [each["detail"] for each in told if each["event"] == "own_authority"] == [
                f"{file} is what callers have to trust"
            ]
            with httpx.Client(verify=ssl.create_default_context(cafile=file), trust_env=False, timeout=60) as http:
                answer = http.get(f"{url}/.well-known/openid-configuration")
            assert answer.json()["issuer"] == url
            assert "strict-transport-security" not in answer.headers
            authorities.append(Path(file).read_bytes())
            process.send_signal(signal.SIGTERM)
            assert process.wait(PROCESS_SECONDS) == 0
    assert authorities[0] == authorities[1]


@pytest.mark.full
def test_the_garbage_collector_leaves_alone_what_stands_when_it_serves(tmp_path: Path) -> None:
    """A full collection would else stop every request for as long as it looks at the whole program."""
    port = free_port()
    settings = {"CORPID_PORT": str(port), "CORPID_BASE_URL": f"http://localhost:{port}"}
    with started(tmp_path, f"{COLLECTOR}; {PROGRAM}", **settings) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "listening"
        process.send_signal(signal.SIGTERM)
        frozen, youngest, *_ = map(int, process.stdout.read().splitlines()[-1].split())
    assert frozen > 50_000
    assert youngest > 10_000


@pytest.mark.full
def test_workers_share_what_stands_before_they_are_started(tmp_path: Path) -> None:
    """What is frozen before the fork: a collection would write to it, and give each worker a copy of its own."""
    with started(tmp_path, WORKER) as process:
        said, complaint = process.communicate(timeout=PROCESS_SECONDS)
    assert complaint == ""
    assert int(said) > 50_000


@pytest.mark.full
def test_it_refuses_to_start_with_one_sentence(tmp_path: Path) -> None:
    """Every other reason: test_serve.py."""
    with started(tmp_path, CORPID_BASE_URL="http://idp.example") as process:
        _, complaint = process.communicate(timeout=PROCESS_SECONDS)
    assert process.returncode == 1
    assert "base_url http://idp.example is http outside localhost" in complaint
    assert complaint.count("\n") == 1
