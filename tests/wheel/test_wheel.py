"""What is published holds everything that the program needs, and production's nothing of the developer kit.

The source archive of `corpid` is built from this tree and the wheel from the archive, as a publisher does it; the wheel of
`corpid-dev` from the tree. They are installed with the locked packages into environments that have nothing else.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, cast

import httpx
import pytest

from corpid import __version__
from corpid.rules.oauth.discovery import PAR_PATH
from corpid_dev.cli import COMMANDS as KIT_COMMANDS
from corpid_dev.relying_party import people
from corpid_dev.relying_party.browser import Browser
from corpid_dev.relying_party.interfaces import CURRENT
from corpid_dev.relying_party.jwt import RelyingPartyKeys
from corpid_dev.relying_party.people import Person
from corpid_dev.relying_party.relying_party import RelyingParty
from corpid_dev.web.documents import DOCUMENTS
from corpid_dev.web.routes import routes
from tests.machine import free_port
from tests.testing.test_command import CALLBACK, directory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid_dev.web.mode import Mode

from corpid_dev.demo.new_rp import FILES

ROOT = Path(__file__).parents[2]
PASSWORD, SECRET = "a long word for production", "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
SOURCE, KIT = ROOT / "src" / "corpid", ROOT / "src" / "corpid_dev"
BESIDE = {"pyproject.toml", "README.md", "LICENSE"}
"""of the kit: its project"""
UV = ROOT / ".tools" / "bin" / "uv"

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]


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
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the developer kit."""
    folder = tmp_path_factory.mktemp("kit")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=KIT)
    (built,) = folder.glob("*.whl")
    return built


def installed(folder: Path, packages: str, *wheels: Path) -> Path:
    """An environment with locked packages and these wheels; its Python."""
    locked = ROOT / "requirements" / f"{packages}.txt"
    run(UV, "venv", "--quiet", "--python", sys.executable, "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    run(UV, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", locked, cwd=folder)
    run(UV, "pip", "install", "--quiet", "--python", python, "--no-deps", "--offline", *wheels, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def production(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With `corpid` alone."""
    return installed(tmp_path_factory.mktemp("production"), "runtime", wheel)


@pytest.fixture(scope="module")
def environment(wheel: Path, kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A developer's, with both."""
    return installed(tmp_path_factory.mktemp("developer"), "developer", wheel, kit)


def files_of(package: Path) -> set[str]:
    return {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    """Templates, static files, migrations, lists, and the mark of a typed package."""
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert files_of(SOURCE) - packed == set()
    assert any(name.endswith("licenses/LICENSE") for name in packed)


def test_the_wheel_of_the_developer_kit_holds_every_file_of_it_and_the_examples(kit: Path) -> None:
    packed = set(zipfile.ZipFile(kit).namelist())
    assert files_of(KIT) - packed == {f"corpid_dev/{name}" for name in BESIDE}
    assert "corpid_dev/demo/directory.yaml" in packed
    assert {f"corpid_dev/demo/{language}/{name}" for language, names in FILES.items() for name in names} <= packed
    assert any(name.endswith("licenses/LICENSE") for name in packed)


def test_a_source_archive_of_the_developer_kit_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """docs/decisions/0038: no wheel could be built from it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    asked = subprocess.run(command, cwd=KIT, capture_output=True, text=True, check=False)
    assert asked.returncode != 0
    assert "corpid-dev has no source archive; build its wheel in a checkout" in asked.stderr.splitlines()[-1]
    assert not list(tmp_path.glob("*.tar.gz"))


def test_the_developer_kit_asks_for_corpid_of_the_same_version(kit: Path) -> None:
    packed = zipfile.ZipFile(kit)
    metadata = packed.read(next(name for name in packed.namelist() if name.endswith("METADATA"))).decode()
    assert f"\nVersion: {__version__}\n" in metadata
    assert f"\nRequires-Dist: corpid=={__version__}\n" in metadata


def test_production_has_no_file_and_no_text_of_the_developer_kit(wheel: Path, kit: Path) -> None:
    """D66: developer mode is not installed in production."""
    packed = zipfile.ZipFile(wheel)
    tops = {name.split("/")[0] for name in packed.namelist()}
    assert tops == {"corpid", f"corpid-{__version__}.dist-info"}
    within = {path.partition("/")[2] for path in zipfile.ZipFile(kit).namelist() if path.startswith("corpid_dev/")}
    kinds = (".html", ".css", ".js", ".json", ".yaml", ".pot")
    shared = {name for name in within if name.endswith(kinds) and f"corpid/{name}" in packed.namelist()}
    assert shared == set()
    said = {name: packed.read(name).decode() for name in packed.namelist() if name.endswith((".po", ".pot"))}
    assert said
    for name, catalogue in said.items():
        assert not re.search(r"Sign in at once|one click signs a test person in|Anybody, acting for", catalogue), name


def test_production_has_no_command_of_the_developer_kit(production: Path) -> None:
    """They are not listed, and each says in one sentence which package it is part of."""
    program = production / "venv" / "bin" / "corpid"
    shown = run(program, "--help", cwd=production)
    assert "serve" in shown
    for name in KIT_COMMANDS:
        assert not re.search(rf"^\W*{name}\b", shown, re.MULTILINE), name
        asked = subprocess.run([program, name, "--check"], cwd=production, capture_output=True, text=True, check=False)
        assert (asked.returncode, asked.stdout) == (1, "")
        missing = "is part of the developer kit, the package corpid-dev, which is not installed here"
        assert " ".join(asked.stderr.split()) == f"Error: corpid {name} {missing}"
    missing = "import importlib.util as u; print(u.find_spec('corpid_dev'), u.find_spec('joserfc'))"
    assert run(production / "venv" / "bin" / "python", "-c", missing, cwd=production) == "None None\n"


@pytest.fixture(scope="module")
def keys() -> RelyingPartyKeys:
    return RelyingPartyKeys.generate()


@contextmanager
def serving(production: Path, keys: RelyingPartyKeys, **settings: str) -> Iterator[str]:
    """`corpid serve` of production, with a person and a client; its issuer."""
    content, port = directory(keys), free_port()
    content["users"]["mei"] |= {"password": PASSWORD, "totp_secret": SECRET}
    issuer = f"http://localhost:{port}"
    with tempfile.TemporaryDirectory() as name:
        folder, program = Path(name), production / "venv" / "bin" / "corpid"
        (folder / "directory.json").write_text(json.dumps(content), encoding="utf-8")
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CORPID_")}
        kept |= {
            "CORPID_BASE_URL": issuer,
            "CORPID_PORT": str(port),
            "CORPID_DATA_DIR": str(folder / "data"),
            **settings,
        }
        apply: list[str | Path] = [program, "apply", "--development", "directory.json"]
        subprocess.run(apply, cwd=folder, env=kept, capture_output=True, check=True)
        with subprocess.Popen([program, "serve"], cwd=folder, env=kept, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert any('"listening"' in line for line in process.stdout)
                yield issuer
            finally:
                process.terminate()


async def test_in_production_a_person_signs_in_and_no_path_of_the_developer_kit_exists(
    production: Path, keys: RelyingPartyKeys
) -> None:
    """D66: also with developer_mode on, which then has its banner and exact refusals, and leads nowhere."""
    with serving(production, keys, CORPID_DEVELOPER_MODE="true") as issuer:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            rp = RelyingParty(
                client_id="rp", issuer=issuer, http=http, interface=CURRENT, redirect_uri=CALLBACK, keys=keys
            )
            mei = Person(user_name="mei", password=PASSWORD, totp_secret=SECRET)
            await rp.redeem(await people.sign_in(Browser(http), await rp.begin(), mei))
            assert "Applicant" in str(await rp.userinfo())
            for route in (*DOCUMENTS, *routes(cast("Mode", None))):
                for method in ("GET", "POST", "DELETE"):
                    path = route.path.replace("{rest}", "x")
                    assert (await http.request(method, issuer + path)).status_code == 404, (method, path)
            page = await http.get(f"{issuer}/authorize?client_id=unknown", headers={"Accept": "text/html"})
            assert "Developer mode" in page.text
            assert "For developers" in page.text
            asked = {"client_id": "rp", "client_secret": "secret"}
            refused = (await http.post(issuer + PAR_PATH, data=asked)).json()
            assert "private_key_jwt only, and has no client secrets" in refused["error_description"]
            bare = await http.get(f"{issuer}/userinfo")
            assert "Link" not in bare.headers
            assert "/developer" not in page.text + str(refused)
            assert "error_uri" not in refused


def test_the_locked_packages_are_all_that_the_wheels_ask_for(production: Path, environment: Path) -> None:
    for each in (production, environment):
        run(UV, "pip", "check", "--python", each / "venv" / "bin" / "python", cwd=each)


def test_a_relying_party_is_made_from_the_files_in_the_wheel(environment: Path) -> None:
    """`corpid rp-new`: they are those of `examples/`."""
    read = (
        "from corpid_dev.demo import example_files, new_rp\n"
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


def test_the_demo_check_passes_from_the_installed_wheel(environment: Path) -> None:
    imported = run(
        environment / "venv" / "bin" / "python", "-c", "import corpid; print(corpid.__file__)", cwd=environment
    )
    assert Path(imported.strip()).is_relative_to(environment)
    run(environment / "venv" / "bin" / "corpid", "demo", "--check", cwd=environment)


IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
optional = {"corpid.web.telemetry.spans", "corpid_dev.testing.fixtures"}
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        if module.name not in optional and not module.name.endswith("__main__") and ".versions." not in module.name:
            importlib.import_module(module.name)
import sqlalchemy.ext.asyncio, greenlet
"""


def test_every_module_imports_with_the_locked_packages_alone(production: Path, environment: Path) -> None:
    """Also those of engines that the demo does not use; the extra for traces and pytest are packages of one's own."""
    for each, packages in ((production, ["corpid"]), (environment, ["corpid", "corpid_dev"])):
        run(each / "venv" / "bin" / "python", "-c", IMPORT_EVERYTHING, *packages, cwd=each)


def test_a_provider_for_tests_runs_from_the_installed_wheel(environment: Path) -> None:
    """docs/testing.md, "Without pytest": pytest is not needed."""
    used = (
        "from corpid_dev.testing import running\n"
        "with running() as provider:\n"
        "    print(provider.add_client('rp', redirect_uris=['http://127.0.0.1:8000/callback']).client_id)"
    )
    assert run(environment / "venv" / "bin" / "python", "-c", used, cwd=environment) == "rp\n"


def test_the_demo_check_passes_with_nothing_installed(wheel: Path, kit: Path, tmp_path: Path) -> None:
    """`uvx corpid-dev demo`, of these wheels: uv makes an environment for one run, and none of this checkout is in it."""
    locked = ROOT / "requirements" / "developer.txt"
    command = ("tool", "run", "--python", sys.executable, "--isolated", "--constraints", locked)
    run(UV, *command, "--from", kit, "--with", wheel, "corpid-dev", "demo", "--check", cwd=tmp_path)


def test_the_demo_check_passes_with_pipx_alone(
    wheel: Path, kit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pipx run corpid-dev demo`, of these wheels, with the locked versions and nothing of this checkout."""
    locked = (ROOT / "requirements" / "developer.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    versions = tmp_path / "constraints.txt"  # with hashes, pip would want one of the wheel, too
    versions.write_text("\n".join(line.partition(" --hash")[0] for line in locked.splitlines()))
    monkeypatch.setenv("PIPX_HOME", str(tmp_path / "pipx"))
    monkeypatch.setenv("PIP_CONSTRAINT", str(versions))
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    command = (Path(sys.executable).with_name("pipx"), "run", "--no-cache", "--python", sys.executable, "--spec", kit)
    run(*command, "corpid-dev", "demo", "--check", cwd=tmp_path)
