"""A fresh checkout does its own set-up: `make demo` alone is enough."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# what make and the tools leave in a tree that is no longer fresh
LEFT_BEHIND = shutil.ignore_patterns(
    ".git", ".venv", ".tools", "node_modules", "__pycache__", ".*_cache", ".hypothesis", "build", "dist", "out", "data"
)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_make_demo_alone_sets_a_fresh_checkout_up_and_passes_its_check(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT, checkout, ignore=LEFT_BEHIND)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CORPID_", "MAKE", "MFLAGS"))}
    kept.pop("VIRTUAL_ENV", None)
    result = subprocess.run(
        ["make", "demo", "ARGS=--check"], cwd=checkout, env=kept, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
