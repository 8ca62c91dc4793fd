"""`python -m benchmarks`, as a person runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import engines

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]


def command(*arguments: str) -> Sequence[str]:
    return [sys.executable, "-m", "benchmarks", *arguments]


def measured(tmp_path: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    """The JSON and the Markdown of a run that has to succeed."""
    written = tmp_path / "result.json"
    finished = subprocess.run(
        command(*arguments, "--json", str(written)), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return json.loads(written.read_text(encoding="utf-8")), finished.stdout


@pytest.fixture
def servers() -> None:
    """PostgreSQL and Redis are installed; the benchmark starts its own."""
    engines._required(engines.POSTGRESQL, "PostgreSQL")
    engines._required(engines.REDIS, "Redis")
