"""The audit leaves although processes are killed: nothing is lost, and one streams at a time (docs/decisions/0030)."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.engines import postgresql
from tests.many.nodes import Nodes, running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


pytestmark = pytest.mark.full

PATIENCE = 60.0
"""another process takes over after 20 seconds"""


def until(reached: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < end, otherwise
        time.sleep(0.1)


def left(file: Path) -> list[int]:
    """The numbers of whole lines."""
    return [json.loads(line)["number"] for line in file.read_bytes().splitlines() if line.endswith(b"}")]


def in_the_database(nodes: Nodes) -> list[int]:
    lines = nodes.command("audit", "list", "--after", "0", "--limit", "10000", "--json").splitlines()
    return [json.loads(line)["number"] for line in lines]


def streaming(nodes: Nodes) -> list[int]:
    """The nodes that began to stream, by number."""
    logs = [(nodes.directory / f"node-{number}.log").read_text() for number in range(len(nodes.ports))]
    return [number for number, log in enumerate(logs) if "audit_stream_begun" in log]


def test_a_killed_process_loses_no_entry_and_another_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    with (
        postgresql(migrated=True) as url,
        running(tmp_path, url, "", count=3, audit_stream=str(file), workers="2") as nodes,
    ):
        until(lambda: file.exists() and left(file) == in_the_database(nodes), "the entries did not leave")
        [first] = streaming(nodes)
        for on in ("on", "off"):
            nodes.command("maintenance", on)
        os.kill(nodes.processes[first], signal.SIGKILL)
        for on in ("on", "off"):
            nodes.command("maintenance", on)
        until(lambda: set(left(file)) == set(in_the_database(nodes)), "no other process went on")
        assert len(streaming(nodes)) == 2
        once = list(dict.fromkeys(left(file)))
        assert once == sorted(once)


def test_a_node_that_stops_hands_over_at_once(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    with postgresql(migrated=True) as url, running(tmp_path, url, "", count=2, audit_stream=str(file)) as nodes:
        until(lambda: file.exists() and left(file) == in_the_database(nodes), "the entries did not leave")
        [first] = streaming(nodes)
        os.kill(nodes.processes[first], signal.SIGTERM)
        nodes.command("maintenance", "on")
        until(lambda: left(file) == in_the_database(nodes), "no other process went on")
        assert len(streaming(nodes)) == 2
