"""docs/testing.md: its example is the file in examples/, and its tests pass."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "python"


def test_the_example_of_the_guide_is_the_file_whole() -> None:
    assert f"```python\n{(EXAMPLES / 'test_rp.py').read_text()}```\n" in (ROOT / "docs" / "testing.md").read_text()


@pytest.mark.full
def test_the_tests_of_the_example_pass(tmp_path: Path) -> None:
    """Outside this checkout, with no configuration of it."""
    for name in ("rp.py", "test_rp.py"):
        shutil.copy(EXAMPLES / name, tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_rp.py"]
    tests = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert "3 passed" in tests.stdout
