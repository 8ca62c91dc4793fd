"""What an OpenTelemetry collector that is away costs: nothing."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.machine import free_port
from tests.web.served import PROCESS_SECONDS
from tests.web.test_traces import ENDPOINT, collector
from tests.web.test_workers import events, until, working

if TYPE_CHECKING:
    from pathlib import Path

    from tests.web.collector import Collector

__all__ = ["collector"]

pytestmark = pytest.mark.full


@pytest.mark.parametrize("way", ["silent", "absent"])
def test_a_collector_that_is_away_costs_no_request_and_does_not_keep_the_process(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    collector.silent.set()
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
    if way == "absent":
        monkeypatch.setenv(ENDPOINT, f"http://127.0.0.1:{free_port()}")
    with working(tmp_path, 1) as (process, url):
        until(lambda: events(tmp_path, "listening") == 1)
        with httpx.Client(trust_env=False) as http:
            statuses = [http.get(f"{url}/.well-known/keys").status_code for _ in range(50)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(PROCESS_SECONDS) == 0
    assert statuses == [200] * 50
    assert events(tmp_path, "stopped") == 1
    assert events(tmp_path, "traces_lost") == 1 or way == "absent"
