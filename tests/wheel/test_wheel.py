"""What is published holds everything that the program needs.

The source archive is built from this tree and the wheel from the archive, as a publisher does it; then the wheel
is installed with the locked packages into an environment that has nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from corpid.sandbox.new_rp import FILES

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "corpid"
UV = ROOT / ".tools" / "bin" / "uv"

pytestmark = pytest.mark.timeout(300)


def run(*command: str | Path, cwd: Path) -> str:
    """Run in an environment without this checkout's; the output."""
    kept = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "PYTHONPATH"}}
    kept = {name: value for name, value in kept.items() if not name.startswith("CORPID_")}
    result = subprocess.run(command, cwd=cwd, env=kept, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=ROOT)
    (archive,) = folder.glob("*.tar.gz")
    run("tar", "-xzf", archive, cwd=folder)
    tree = folder / archive.name.removesuffix(".tar.gz")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=tree)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    locked = ROOT / "requirements" / "runtime.txt"
    run(UV, "venv", "--quiet", "--python", sys.executable, "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    run(UV, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", locked, cwd=folder)
    run(UV, "pip", "install", "--quiet", "--python", python, "--no-deps", "--offline", wheel, cwd=folder)
    return folder


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    """Templates, static files, migrations, lists, the mark of a typed package, and the demo's directory."""
    packed = set(zipfile.ZipFile(wheel).namelist())
    own = {
        f"corpid/{path.relative_to(SOURCE).as_posix()}"
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert own - packed == set()
    assert "corpid/sandbox/directory.yaml" in packed
    assert {f"corpid/sandbox/{language}/{name}" for language, names in FILES.items() for name in names} <= packed
    assert any(name.endswith("licenses/LICENSE") for name in packed)


def test_the_locked_packages_are_all_that_the_wheel_asks_for(environment: Path) -> None:
    run(UV, "pip", "check", "--python", environment / "venv" / "bin" / "python", cwd=environment)


def test_a_relying_party_is_made_from_the_files_in_the_wheel(environment: Path) -> None:
    """`corpid rp-new`: they are those of `examples/`."""
    read = (
        "from corpid.sandbox import example_files, new_rp\n"
        "for language, names in new_rp.FILES.items():\n"
        "    for name in names:\n"
        "        print(hash_of(example_files.content(f'{language}/{name}')))"
    )
    hash_of = "import hashlib\ndef hash_of(content): return hashlib.sha256(content).hexdigest()\n"
    printed = run(environment / "venv" / "bin" / "python", "-c", hash_of + read, cwd=environment)
    assert printed.split() == [
        sha256((ROOT / "examples" / language / name).read_bytes()).hexdigest()
        for language, names in FILES.items()
        for name in names
    ]


@pytest.mark.full
def test_the_demo_check_passes_from_the_installed_wheel(environment: Path) -> None:
    imported = run(
        environment / "venv" / "bin" / "python", "-c", "import corpid; print(corpid.__file__)", cwd=environment
    )
    assert Path(imported.strip()).is_relative_to(environment)
    run(environment / "venv" / "bin" / "corpid", "demo", "--check", cwd=environment)


IMPORT_EVERYTHING = """
import importlib, pkgutil, corpid
optional = {"corpid.web.telemetry.spans", "corpid.testing.fixtures"}
for module in pkgutil.walk_packages(corpid.__path__, "corpid."):
    if module.name not in optional and not module.name.endswith("__main__") and ".versions." not in module.name:
        importlib.import_module(module.name)
import sqlalchemy.ext.asyncio, greenlet
"""


@pytest.mark.full
def test_every_module_imports_with_the_locked_packages_alone(environment: Path) -> None:
    """Also those of engines that the demo does not use; the extra for traces and pytest are packages of one's own."""
    run(environment / "venv" / "bin" / "python", "-c", IMPORT_EVERYTHING, cwd=environment)


@pytest.mark.full
def test_a_provider_for_tests_runs_from_the_installed_wheel(environment: Path) -> None:
    """docs/testing.md, "Without pytest": pytest is not needed."""
    used = (
        "from corpid.testing import running\n"
        "with running() as provider:\n"
        "    print(provider.add_client('rp', redirect_uris=['http://127.0.0.1:8000/callback']).client_id)"
    )
    assert run(environment / "venv" / "bin" / "python", "-c", used, cwd=environment) == "rp\n"


@pytest.mark.full
def test_the_demo_check_passes_with_nothing_installed(wheel: Path, tmp_path: Path) -> None:
    """`uvx corpid demo`, of this wheel: uv makes an environment for one run, and none of this checkout is in it."""
    locked = ROOT / "requirements" / "runtime.txt"
    command = ("tool", "run", "--python", sys.executable, "--isolated", "--constraints", locked, "--from", wheel)
    run(UV, *command, "corpid", "demo", "--check", cwd=tmp_path)


@pytest.mark.full
def test_the_demo_check_passes_with_pipx_alone(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pipx run corpid demo`, of this wheel, with the locked versions and nothing of this checkout."""
    locked = (ROOT / "requirements" / "runtime.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    versions = tmp_path / "constraints.txt"  # with hashes, pip would want one of the wheel, too
    versions.write_text("\n".join(line.partition(" --hash")[0] for line in locked.splitlines()))
    monkeypatch.setenv("PIPX_HOME", str(tmp_path / "pipx"))
    monkeypatch.setenv("PIP_CONSTRAINT", str(versions))
    command = (Path(sys.executable).with_name("pipx"), "run", "--no-cache", "--python", sys.executable, "--spec", wheel)
    run(*command, "corpid", "demo", "--check", cwd=tmp_path)
