"""The metrics of `corpid serve --workers N`: one address, one answer, whichever process is asked."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from http.client import HTTPConnection
from typing import TYPE_CHECKING

import pytest

from tests.machine import free_port
from tests.web.served import PATIENCE, PROCESS_SECONDS
from tests.web.test_metrics import Scraped
from tests.web.test_workers import events, until, workers_of, working

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.full

KEYS = "/.well-known/keys"


def got(address: str, path: str) -> str:
    """On a connection of its own, so that any worker may answer."""
    with closing(HTTPConnection(address, timeout=PATIENCE)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.status == 200
        return answer.read().decode()


def scraped(address: str) -> Scraped:
    return Scraped(got(address, "/metrics"))


def answered(address: str) -> float:
    return scraped(address)["corpid_requests_total", KEYS, "2xx", ""]


def ask(url: str, times: int) -> None:
    for _ in range(times):
        got(url.removeprefix("http://"), KEYS)


def test_what_workers_counted_is_summed_and_outlives_them(tmp_path: Path) -> None:
    """Metrics with several processes, also after `kill -9` of one; limits are those of the living."""
    address = f"127.0.0.1:{free_port()}"
    with working(tmp_path, 3, metrics_address=address, hashing_queue="9") as (process, url):
        until(lambda: events(tmp_path, "listening") == 3)
        until(lambda: scraped(address)["corpid_hashing_limit",] == 30)
        ask(url, 60)
        # A request is counted just after its answer has left.
        until(lambda: answered(address) == 60)
        assert {answered(address) for _ in range(6)} == {60}
        os.kill(workers_of(process)[0], signal.SIGKILL)
        until(lambda: events(tmp_path, "listening") == 4)
        assert scraped(address)["corpid_workers_ended_total",] == 1
        assert scraped(address)["corpid_ready", "database"] == 1
        ask(url, 10)
        until(lambda: answered(address) == 70)
        assert {answered(address) for _ in range(6)} == {70}
        until(lambda: scraped(address)["corpid_hashing_limit",] == 30)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PROCESS_SECONDS) == 0
