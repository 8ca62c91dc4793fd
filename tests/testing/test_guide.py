"""docs/testing.md: its examples are files in examples/, and their tests pass."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.examples import installed
from tests.interop.node_process import NODE

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "python"
GUIDE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
FILES = {"js": ROOT / "examples" / "node" / "rp.test.mjs", "java": ROOT / "examples" / "java" / "RelyingPartyTest.java"}
WITH_CORPID = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
JUNIT = "org.junit.platform.console.ConsoleLauncher"


def test_the_example_of_the_guide_is_the_file_whole() -> None:
    assert f"```python\n{(EXAMPLES / 'test_rp.py').read_text()}```\n" in GUIDE


@pytest.mark.full
def test_the_tests_of_the_example_pass(tmp_path: Path) -> None:
    """Outside this checkout, with no configuration of it."""
    for name in ("rp.py", "test_rp.py"):
        shutil.copy(EXAMPLES / name, tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_rp.py"]
    tests = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert "3 passed" in tests.stdout


@pytest.mark.parametrize("language", FILES)
def test_the_examples_of_other_languages_are_parts_of_their_files(language: str) -> None:
    """But the class for Testcontainers, whose library no test has."""
    content = FILES[language].read_text(encoding="utf-8")
    shown = re.findall(rf"```{language}\n(.*?)```\n", GUIDE, re.DOTALL)
    assert [part for part in shown if part not in content and "GenericContainer" not in part] == []
    assert any(part in content for part in shown)


@pytest.mark.full
def test_the_tests_of_the_example_for_node_pass() -> None:
    command: list[str | Path] = [NODE, "--test", FILES["js"]]
    tests = subprocess.run(command, env=WITH_CORPID, capture_output=True, text=True, check=False)
    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert "pass 3" in tests.stdout


@pytest.mark.interop
def test_the_tests_of_the_example_for_java_pass(tmp_path: Path) -> None:
    installed("java", "java", "javac", "mvn", probe=("java", "--version"))
    folder, classes = FILES["java"].parent, f"lib/*{os.pathsep}{tmp_path}"
    compiler: list[str | Path] = ["javac", "-Xlint:all", "-cp", "lib/*", "-d", tmp_path, FILES["java"]]
    subprocess.run(compiler, cwd=folder, check=True)
    command = ["java", "-cp", classes, JUNIT, "execute", "--disable-banner", "--select-class=RelyingPartyTest"]
    tests = subprocess.run(command, cwd=folder, env=WITH_CORPID, capture_output=True, text=True, check=False)
    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert "2 tests successful" in tests.stdout
