"""How serving processes differ, and what operators are told (D43, D49)."""

from __future__ import annotations

from msgspec.structs import replace

from corpid.rules import diagnostics
from corpid.rules.server_processes import GONE_SECONDS, ServerProcess, find_differing, live

NOW = 1_800_000_000
ONE = ServerProcess(
    process_id="one",
    host="node1",
    number=1,
    address="0.0.0.0:8000",
    version="0.1.0",
    started_at=NOW - 100,
    seen_at=NOW,
    settings={"base_url": "https://login.example", "key_encryption_key": "aaaa"},
)
TWO = replace(ONE, process_id="two", host="node2", started_at=NOW - 50)
THREE = replace(ONE, process_id="three", host="node3", started_at=NOW - 10)


def test_a_process_that_was_not_seen_for_minutes_is_gone() -> None:
    """D49."""
    assert live([ONE, replace(TWO, seen_at=NOW - GONE_SECONDS - 1)], now=NOW) == [ONE]


def test_the_one_that_differs_from_most_is_marked_with_what_differs() -> None:
    """D43, D49."""
    other = replace(THREE, version="0.2.0", settings={**ONE.settings, "key_encryption_key": "bbbb"})
    assert find_differing([other, TWO, ONE]) == {"three": ("version", "key_encryption_key")}


def test_of_two_that_differ_the_later_one_is_marked() -> None:
    """D49."""
    assert find_differing([replace(TWO, version="0.2.0"), ONE]) == {"two": ("version",)}


def test_other_versions_are_a_warning_and_other_settings_a_problem_that_name_the_nodes() -> None:
    """D43, D49."""
    other = replace(TWO, version="0.2.0", settings={**ONE.settings, "base_url": "https://other.example"})
    found = {each.about: each for each in diagnostics.processes([ONE, other], now=NOW)}
    assert found["versions of the processes"].verdict == "warning"
    assert "0.2.0 at node2 (1)" in found["versions of the processes"].seen
    assert found["base_url of the processes"].verdict == "problem"
    assert "https://other.example at node2 (1)" in found["base_url of the processes"].seen


def test_processes_that_are_gone_or_alike_are_no_warning() -> None:
    """D49."""
    gone = replace(TWO, version="0.0.9", seen_at=NOW - GONE_SECONDS - 1)
    assert [each.verdict for each in diagnostics.processes([ONE, THREE, gone], now=NOW)] == ["ok"]
    assert list(diagnostics.processes([], now=NOW)) == []
