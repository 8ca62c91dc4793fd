"""Commands of the developer kit where the kit is absent, broken or another version's (docs/decisions/0038)."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from corpid import __version__
from corpid.cli import COMMANDS
from tests.machine import free_port
from tests.tiers import first_or_full

if TYPE_CHECKING:
    from pathlib import Path

SECONDS: Final = 60
ADVICE: Final = f"install corpid-dev=={__version__}"
REASONS: Final = {
    "broken": f"corpid-dev {__version__} cannot be loaded (ModuleNotFoundError: No module named 'no_such_kit'); {ADVICE}",
    "another version": f"corpid-dev 0.0.9 is for another version; {ADVICE}",
    "no list": "the commands of corpid-dev are no list of commands; reinstall or remove it",
    "left over": f"the metadata of corpid-dev cannot be read; {ADVICE}",
}
TYPED: Final = ("corpid demo --", "corpid demo ", "corpid frobnicate ", "corpid frobnicate x")
"""completed in `make test` where there is no kit, in `make test-full` for each reason, too"""
PROGRAM: Final = """
import sys
sys.argv[0] = "corpid"
from corpid.cli import main
main()
"""
ABSENT: Final = """
import importlib.metadata as metadata
found = metadata.distribution

def without(name):
    if name == "corpid-dev":
        raise metadata.PackageNotFoundError(name)
    return found(name)

metadata.distribution = without
metadata.entry_points = lambda **_: []
"""
"""as if no kit were installed"""


def distribution(folder: Path, entry: str, *, name: str = "corpid-dev", version: str | None = __version__) -> Path:
    """A folder of packages with the metadata of one; without a version, what a removal left of them."""
    written = folder / f"{name.replace('-', '_')}-{version or __version__}.dist-info"
    written.mkdir(parents=True)
    groups = (f"[{group}]\nsome = {entry}\n" for group in ("corpid.commands", "corpid.developer_mode"))
    (written / "entry_points.txt").write_text("".join(groups), encoding="utf-8")
    if version is not None:
        metadata = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n"
        (written / "METADATA").write_text(metadata, encoding="utf-8")
    return folder


@pytest.fixture
def kits(tmp_path: Path) -> dict[str, Path]:
    return {
        "broken": distribution(tmp_path / "broken", "no_such_kit:COMMANDS"),
        "another version": distribution(tmp_path / "other", "corpid_dev.cli:COMMANDS", version="0.0.9"),
        "no list": distribution(tmp_path / "list", "corpid:__version__"),
        "left over": distribution(tmp_path / "left", "corpid_dev.cli:COMMANDS", version=None),
    }


def corpid(
    *arguments: str, packages: Path | None = None, absent: bool = False, typed: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """`corpid …`, with further packages before those of the environment; `typed`: what Tab completes."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CORPID_")}
    environment |= {"COLUMNS": "200", **variables}
    if packages is not None:
        environment["PYTHONPATH"] = str(packages)
    if typed:
        environment |= {
            "_CORPID_COMPLETE": "complete_bash",
            "COMP_WORDS": typed,
            "COMP_CWORD": str(len(typed.split(" ")) - 1),
        }
    program = (ABSENT if absent else "") + PROGRAM
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment, capture_output=True, text=True, check=False, timeout=SECONDS,
    )  # fmt: skip


@pytest.mark.parametrize("kind", first_or_full(REASONS))
def test_the_list_of_commands_says_in_one_line_why_an_installed_kit_is_missing(
    kits: dict[str, Path], kind: str
) -> None:
    asked = corpid("--help", packages=kits[kind])
    assert (asked.returncode, asked.stderr.splitlines()) == (0, [f"Note: {REASONS[kind]}"])
    assert " serve " in asked.stdout
    assert " demo " not in asked.stdout


@pytest.mark.full
@pytest.mark.parametrize("kind", first_or_full(REASONS))
def test_a_command_of_an_unusable_kit_says_why(kits: dict[str, Path], kind: str) -> None:
    asked = corpid("demo", "--check", packages=kits[kind])
    said = "Error: corpid demo is part of the developer kit, the package corpid-dev, which cannot be used:"
    assert (asked.returncode, asked.stdout, asked.stderr.splitlines()) == (1, "", [said, REASONS[kind]])


@pytest.mark.full
@pytest.mark.parametrize("kind", first_or_full(REASONS))
def test_a_misspelt_command_is_refused_whatever_the_kit_is(kits: dict[str, Path], kind: str) -> None:
    asked = corpid("srve", packages=kits[kind])
    assert asked.returncode == 2
    assert "Did you mean 'serve'" in asked.stderr
    assert "Traceback" not in asked.stderr
    assert asked.stderr.count(REASONS[kind]) == 1


@pytest.mark.full
@pytest.mark.parametrize("name", first_or_full(["serve", "demo", "new"]))
def test_another_package_adds_no_command_and_breaks_none(tmp_path: Path, name: str) -> None:
    """D66: those of the kit are read of its own distribution, and no own command is ever replaced."""
    distribution(tmp_path, "foreign:COMMANDS", name="foreign")
    (tmp_path / "foreign.py").write_text(
        f"from corpid.cli import CommandEntry\nCOMMANDS = {{{name!r}: CommandEntry('foreign', 'run', 'Owned')}}\n"
        "def run() -> None:\n    print('owned')\n",
        encoding="utf-8",
    )
    shown, asked = corpid("--help", packages=tmp_path), corpid(name, "--help", packages=tmp_path)
    assert "Owned" not in shown.stdout
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "owned" not in (asked.stdout + asked.stderr).lower()
    assert asked.returncode == (2 if name == "new" else 0)


def test_no_command_of_the_kit_has_an_own_commands_name() -> None:
    from corpid_dev.cli import COMMANDS as KIT_COMMANDS

    assert not COMMANDS.keys() & KIT_COMMANDS.keys()


@pytest.mark.full
def test_a_misspelt_command_of_an_absent_kit_is_suggested() -> None:
    """Which then says what it is part of."""
    assert "Did you mean 'demo'" in corpid("demmo", absent=True).stderr
    asked = corpid("demo", absent=True)
    said = "Error: corpid demo is part of the developer kit, the package corpid-dev, which is not installed here\n"
    assert (asked.returncode, asked.stderr) == (1, said)


@pytest.mark.parametrize(
    ("kind", "typed"),
    [
        pytest.param(kind, typed, marks=[] if kind == "absent" else pytest.mark.full)
        for kind in ("absent", *REASONS)
        for typed in TYPED
    ],
)
def test_completion_after_what_does_not_exist_says_nothing(kits: dict[str, Path], kind: str, typed: str) -> None:
    asked = corpid(typed=typed, packages=kits.get(kind), absent=kind == "absent")
    assert asked.stderr == ""
    assert "Traceback" not in asked.stdout


@pytest.mark.full
def test_completion_knows_the_commands_of_the_kit() -> None:
    assert "rp-new" in corpid(typed="corpid rp-").stdout.split()
    assert "--check" in corpid(typed="corpid demo --").stdout.split()


@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.full), "2"])
@pytest.mark.parametrize(
    ("content", "reason"),
    first_or_full(
        [
            ("raise RuntimeError('broken\\x1b')", "cannot be loaded (RuntimeError: broken\\x1b)"),
            ("class Made:\n    def __init__(self):\n        raise RuntimeError('unmade')", "(RuntimeError: unmade)"),
            ("Made = 1", "(TypeError: 'int' object is not callable)"),
            ("Made = dict", "(it has no extension for developer mode)"),
            (
                "from corpid.web.routes import Extension\nclass Made(Extension):\n    is_demo = True",
                "(it has a demo's extension for developer mode)",
            ),
        ],
        together=True,
    ),
)
def test_a_server_of_developer_mode_refuses_to_start_with_a_kit_that_it_cannot_use(
    tmp_path: Path, content: str, reason: str, workers: str
) -> None:
    """D66: said once, before workers are forked, and no store becomes a demo's."""
    packages = distribution(tmp_path / "packages", "made:Made")
    (packages / "made.py").write_text(content, encoding="utf-8")
    data, port = tmp_path / "data", str(free_port())
    asked = corpid(
        "serve", packages=packages, CORPID_DEVELOPER_MODE="true", CORPID_WORKERS=workers, CORPID_DATA_DIR=str(data),
        CORPID_PORT=port, CORPID_BASE_URL=f"http://localhost:{port}",
    )  # fmt: skip
    [said] = asked.stderr.splitlines()
    assert said.startswith("Error: the developer kit cannot be used")
    assert reason in said
    assert "turn developer_mode off" in said
    assert (asked.returncode, "worker" in asked.stdout) == (1, False)
    assert not list(data.rglob("*.sqlite"))
