"""`python -m benchmarks`: a small run is complete and valid. What it measures is never asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.bench.command import ROOT, measured

if TYPE_CHECKING:
    from pathlib import Path

ENDPOINTS = {"PAR", "authorize", "token", "userinfo"}
SMALL = ("--quick", "--flows=12", "--sessions=2", "--warm-up=3", "--connections=3")

pytestmark = pytest.mark.timeout(300)


@pytest.mark.full
def test_a_small_run_is_valid_and_measures_every_part(tmp_path: Path) -> None:
    """docs/costs.md: the whole flow and each endpoint, with the floor of the same run, in each generation."""
    result, printed = measured(tmp_path, *SMALL, "--repetitions=2", "--alone=4")
    assert result["valid"]
    assert result["problems"] == {}
    assert result["verified_flows"] > 0
    assert {name: part["count"] for name, part in result["parts"].items()} == {
        **dict.fromkeys(ENDPOINTS, 12),
        "whole flow": 12,
        "whole flow, one at a time": 4,
    }
    assert all(part["cpu_ms"] > 0 and part["p99_ms"] >= part["p50_ms"] > 0 for part in result["parts"].values())
    assert result["alone"].keys() == ENDPOINTS
    assert len(result["repetitions"]) == 2
    assert sum(item["times"] for item in result["floor"]) == 15
    assert all(item["microseconds"] > 0 for item in result["floor"])
    assert result["ratio"] > 0
    steps = {"current": ENDPOINTS, "fapi2": ENDPOINTS, "intermediate": {*ENDPOINTS, "entity-info"},
             "legacy": {"authorize", "token", "authorization-info"}}  # fmt: skip
    assert {name: one["alone"].keys() for name, one in result["generations"].items()} == steps
    assert all(one["valid"] and one["verified_flows"] > 0 for one in result["generations"].values())
    for name in (*ENDPOINTS, "whole flow", "**a flow**", *steps):
        assert f"| {name} |" in printed


@pytest.mark.full
@pytest.mark.usefixtures("servers")
def test_two_workers_on_postgresql_and_redis_are_measured_together(tmp_path: Path) -> None:
    result, printed = measured(
        *(tmp_path, *SMALL, "--alone=4", "--engines=postgresql", "--workers=2"),
        *("--generation=legacy", "--generation=current"),
    )
    assert result["valid"]
    assert list(result["generations"]) == ["legacy", "current"]
    assert result["parts"]["whole flow"]["count"] == 12
    assert result["parts"]["whole flow"]["cpu_ms"] > 0
    assert "PostgreSQL and Redis, 2 workers" in printed


@pytest.mark.full
@pytest.mark.usefixtures("servers")
def test_several_workers_are_measured_and_one_worker_in_the_same_places(tmp_path: Path) -> None:
    result, printed = measured(
        *(tmp_path, *SMALL, "--alone=2", "--engines=postgresql", "--and-one-worker", "--generation=current")
    )
    assert result["valid"]
    places = {side["place"] for side in result["sides"]}
    assert [side["workers"] for side in result["sides"]] == [1, 2] * len(places)
    for side in result["sides"]:
        assert side["cpu_ms"].keys() == {*ENDPOINTS, "whole flow"}
        assert all(spent > 0 for spent in side["cpu_ms"].values())
    assert "| 2 workers, any processor |" in printed


@pytest.mark.full
def test_a_person_with_many_entities_is_measured_at_every_step(tmp_path: Path) -> None:
    result, printed = measured(tmp_path, "--many-entities=30", "--flows=2")
    assert result["valid"]
    assert [person["entities"] for person in result["persons"]] == [10, 30]
    for person in result["persons"]:
        assert person["steps"].keys() == {*ENDPOINTS, "page of entities", "search", "choose", "leave"}
        assert all(step["count"] == 2 for step in person["steps"].values())
    assert all(weight > 0 for weight in result["page_bytes"].values())
    assert any(name.endswith(".css") for name in result["page_bytes"])
    assert "| choice among 30 entities |" in printed


def test_a_driver_can_load_the_sign_in_without_the_project(tmp_path: Path) -> None:
    """benchmarks/driver.json names a hook that stands alone: no package of this repository is within its reach."""
    target = ROOT / "benchmarks" / "driver.json"
    hook = target.with_name(json.loads(target.read_text(encoding="utf-8"))["hook"])
    program = (
        "import importlib.util, inspect, sys\n"
        "spec = importlib.util.spec_from_file_location('hook', sys.argv[1])\n"
        "hook = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(hook)\n"
        "assert list(inspect.signature(hook.login).parameters) == ['driver', 'client', 'index']\n"
        "found = {name.partition('.')[0] for name in sys.modules} & {'corpid', 'benchmarks'}\n"
        "assert not found, found\n"
    )
    finished = subprocess.run(
        [sys.executable, "-I", "-c", program, hook],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr


@pytest.mark.full
def test_a_provider_that_does_not_start_makes_the_run_fail_and_leaves_the_document_alone(tmp_path: Path) -> None:
    broken = tmp_path / "corpid"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise SystemExit('this provider is broken')")
    document = tmp_path / "benchmarks.md"
    document.write_text("<!-- numbers: flow -->\nas it was\n<!-- /numbers -->\n")
    finished = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--markdown", document],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 1, finished.stdout
    assert "INVALID" in finished.stderr
    assert "this provider is broken" in finished.stderr
    assert "as it was" in document.read_text()
