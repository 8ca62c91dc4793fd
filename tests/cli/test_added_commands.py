"""Commands that other packages add by the entry point `corpid.commands`."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from corpid.cli import COMMANDS

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 60
ADDED = """
from corpid.cli import CommandEntry
COMMANDS = {
    "version-of-another": CommandEntry("another_package", "command", "A command of another package."),
    "export": CommandEntry("another_package", "command", "Another export."),
}
def command() -> None:
    "A command of another package."
    print("of another package")
"""


def corpid(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`corpid …` where the packages in this folder are installed, too."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"}
    command = [sys.executable, "-m", "corpid", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
    )


def install(folder: Path, package: str, code: str) -> None:
    (folder / f"{package}.py").write_text(code, encoding="utf-8")
    packed = folder / f"{package}-1.dist-info"
    packed.mkdir()
    (packed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n", encoding="utf-8")
    (packed / "entry_points.txt").write_text(f"[corpid.commands]\n{package} = {package}:COMMANDS\n", encoding="utf-8")


@pytest.mark.parametrize(
    "code", ["import nothing_of_this_name", "COMMANDS = {'broken': 7}", "raise ValueError('\\x1b[31m')"]
)
def test_a_package_whose_commands_cannot_be_loaded_is_named_and_all_others_are_listed(
    tmp_path: Path, code: str
) -> None:
    """In one line on stderr."""
    install(tmp_path, "broken_package", code)
    listed = corpid(tmp_path, "--help")
    assert listed.returncode == 0
    assert listed.stderr.count("\n") == 1
    assert listed.stderr.startswith("Note: the commands of broken_package cannot be loaded: ")
    assert all(f" {name} " in listed.stdout for name in (*COMMANDS, "demo"))


def test_a_package_adds_commands_and_replaces_none(tmp_path: Path) -> None:
    install(tmp_path, "another_package", ADDED)
    listed = corpid(tmp_path, "--help")
    assert "version-of-another" in listed.stdout
    assert "Another export" not in listed.stdout
    assert corpid(tmp_path, "version-of-another").stdout == "of another package\n"
    assert "of another package" not in corpid(tmp_path, "export", "--help").stdout
