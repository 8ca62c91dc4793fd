"""`make bench-scale` at a hundredth of its size. What it measures is never asserted; what is asked of the database is."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.bench.command import ROOT, command, measured

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.full, pytest.mark.timeout(900), pytest.mark.usefixtures("servers")]


@pytest.fixture
def place() -> Iterator[Path]:
    """An empty directory for whatever the benchmark writes, which the engine's own user can enter."""
    directory = Path(tempfile.mkdtemp(prefix="corpid-place-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


def test_a_sign_in_asks_a_large_database_no_more_than_a_small_one(tmp_path: Path) -> None:
    """docs/costs.md: costs stay flat. Every statement that ran meanwhile, however it came about, is looked at."""
    result, printed = measured(tmp_path, "--scale=0.01", "--sign-ins=20")
    small, large = (result["databases"][name] for name in ("small", "large"))
    assert (small["users"], large["users"]) == (1000, 10_000)
    assert (large["entities"], large["assignments"], large["clients"]) == (2000, 52_000, 100)
    assert result["sign_ins"] == 20
    assert asked(small) == asked(large)
    assert large["each"] == sum(asked(large).values()) > 10
    assert result["read_whole"] == {}
    assert [side["entities"] for side in result["many"].values()] == [200, 2000]
    assert all(step["cpu_ms"] > 0 for side in result["many"].values() for step in side["steps"].values())
    assert "as many statements, every statement by index" in printed
    directory = result["directory"]
    bytes_taken = result["sizes"]
    assert bytes_taken["bytes_a_row"]["users"] > 100
    assert bytes_taken["rows_a_sign_in"]["audit"] == 3
    assert bytes_taken["entries_a_sign_in"]["pushed_request"]["count"] == 1
    assert "| pushed_request | 1 |" in printed
    assert directory["crowd"] == {"small": 1000, "large": 1000}
    # Of so few people PostgreSQL reads them all to sort those that a search by words has found (docs/decisions/0041).
    assert [text for text in directory["read_whole"] if "|| '' AS key_0" not in text] == []
    kinds = [*directory["commands"].values(), *directory["api"].values()]
    assert [name for side in ("commands", "api") for name, one in directory[side].items() if not one["items"]] == []
    assert all(one["items"] > 0 and one["small"]["p50_ms"] > 0 and one["large"]["p50_ms"] > 0 for one in kinds)
    assert directory["api"]["people of the largest entity"]["items"] == 50
    assert "| people of the largest entity | 50 |" in printed
    beside = [
        (side["post_beside"]["count"], side["sign_in_beside"]["count"]) for side in result["provisioning"].values()
    ]
    assert all(posts >= least and sign_ins >= 10 for (posts, sign_ins), least in zip(beside, (50, 200), strict=True))
    assert "| people added through SCIM meanwhile |" in printed


def asked(side: dict[str, list[dict[str, Any]]]) -> Counter[str]:
    """How often each sign-in asks what. PostgreSQL tells some constants as they are, and some as parameters."""
    found: Counter[str] = Counter()
    for one in side["statements"]:
        found[re.sub(r"'[^']*'|\$\d+|\b\d+\b", "?", one["query"])] += one["each"]
    return +found


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=lambda how: how.name)
def test_a_fill_that_is_interrupted_leaves_nothing_behind(place: Path, how: signal.Signals) -> None:
    filling = subprocess.Popen(
        command("--scale=0.5"), cwd=ROOT, env={**os.environ, "TMPDIR": str(place)}, stderr=subprocess.PIPE, text=True
    )
    assert filling.stderr is not None
    assert any(line.startswith("filling the large database") for line in filling.stderr)
    assert list(place.iterdir())
    filling.send_signal(how)
    filling.communicate(timeout=200)
    assert filling.returncode != 0
    assert list(place.iterdir()) == []
    assert processes(place) == []


def processes(place: Path) -> list[str]:
    """Command lines that name the directory."""
    lines = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(process.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # it has just ended
    return [line for line in lines if str(place) in line]
