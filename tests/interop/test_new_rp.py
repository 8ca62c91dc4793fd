"""`corpid rp-new`: from an empty folder to signed in, at a real demo (docs/relying-parties.md)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from itertools import cycle, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx
import pytest

from corpid_dev.demo import example_directory
from corpid_dev.demo.example_directory import ExampleDirectory
from corpid_dev.demo.new_rp import FILES, README
from tests import quick_start
from tests.interop.examples import EXAMPLES, OFFLINE, Example, installed, of_kind, started
from tests.machine import free_port
from tests.tiers import first_or_full

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid_dev.relying_party.people import Person

CORPID: Final = Path(sys.executable).with_name("corpid")
GENERATIONS: Final = ("current", "legacy", "intermediate", "fapi2")
SECONDS: Final = 60
pytestmark = [pytest.mark.full, pytest.mark.timeout(180)]


class RunningDemo:
    """A demo with an issuer for each generation, and its people in turn, since a code works once."""

    def __init__(self, issuers: dict[str, str]) -> None:
        self.issuers = issuers
        self._people = cycle(ExampleDirectory.read(example_directory.content()).persons())

    def next_person(self) -> Person:
        return next(self._people)

    def clients(self) -> dict[str, Any]:
        found = httpx.get(f"{self.issuers['current']}/developer/clients", trust_env=False).json()
        return {each["client_id"]: each for each in found["clients"]}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDemo]:
    data = tmp_path_factory.mktemp("demo")
    options = ("--issuers", ",".join(GENERATIONS), "--port", str(free_port()), "--data-dir", str(data / "demo"))
    with quick_start.Popen((CORPID, "demo", *options), stdout=subprocess.PIPE, text=True) as process:
        said = list(takewhile(lambda line: not line.startswith("Stop"), process.stdout))  # type: ignore[arg-type]
        found = [re.fullmatch(r"Issuer .* generation (\w+): (\S+)\n", line) for line in said]
        yield RunningDemo({each[1]: each[2] for each in found if each})
        process.terminate()


def rp_new(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return quick_start.run((CORPID, "rp-new", *arguments), capture_output=True, text=True, timeout=SECONDS, check=False)


def made(folder: Path, issuer: str, *options: str, language: str = "node") -> str:
    """What the command prints."""
    done = rp_new("--language", language, "--demo", issuer, *options, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def command_of_readme(folder: Path) -> str:
    [found] = re.findall(r"```sh\n(.*)\n```", (folder / README).read_text())
    return str(found)


def values(folder: Path) -> dict[str, str]:
    """The values of its README's table."""
    return dict(re.findall(r"^\| `([A-Z_]+)` \| `([^`]*)` \|", (folder / README).read_text(), re.MULTILINE))


def environment(language: str, folder: Path) -> dict[str, str]:
    """That of somebody who has the toolchain, and has fetched the libraries before: tests fetch nothing."""
    path = os.environ["PATH"]
    if language == "node":
        shutil.copytree(EXAMPLES / "node" / "node_modules", folder / "node_modules", symlinks=True)
        npm = folder.parent / "bin" / "npm"
        npm.parent.mkdir()
        npm.write_text(f'#!/bin/sh\nexec {EXAMPLES.parent}/scripts/npm "$@"\n')
        npm.chmod(0o700)
        return {**os.environ, "PATH": f"{npm.parent}:{path}", "npm_config_offline": "true"}
    if language == "python":
        own = {"PYTHONPATH": sysconfig.get_path("purelib"), "PIP_NO_INDEX": "1"}
        return {**os.environ, **own, "PATH": f"{Path(sys.executable).parent}:{path}"}
    if language == "go":
        installed("go", "go", probe=("go", "list", "-m"))
    else:
        installed("java", "java", "mvn", probe=("java", "--version"))
    return dict(OFFLINE)


def run(folder: Path, language: str) -> Any:
    """Start it by the one command of its README."""
    own = {name: value for name, value in environment(language, folder).items() if name not in values(folder)}
    here = values(folder)
    command = ("sh", "-c", command_of_readme(folder))
    origin = here["ISSUER"].removesuffix(urlsplit(here["ISSUER"]).path)
    return started(command, origin, folder / here["KEYS"], here["CLIENT_ID"], here["PORT"], own)


@pytest.mark.parametrize(
    ("language", "generation"),
    [
        of_kind(language, each, full=(language, each) != ("node", "current"))
        for language in FILES
        for each in GENERATIONS
    ],
)
def test_a_new_relying_party_starts_with_one_command_and_a_person_signs_in(
    demo: RunningDemo, tmp_path: Path, language: str, generation: str
) -> None:
    """From an empty folder, without an edit; in each generation of the demo."""
    folder, issuer = tmp_path / f"{language}-{generation}", demo.issuers[generation]
    folder.mkdir()
    said = made(folder, issuer, "--port", str(free_port()), language=language)
    assert f"{command_of_readme(folder)}\n" in said
    with run(folder, language) as client:
        assert isinstance(client, Example)
        assert f"open {client.home}/login" in said
        assert client.sign_in(demo.next_person()).tells(f'"{folder.name}"')


@pytest.mark.parametrize("language", first_or_full(FILES))
def test_the_program_has_the_values_of_its_registration_and_none_of_the_example(
    demo: RunningDemo, tmp_path: Path, language: str
) -> None:
    port = str(free_port())
    made(tmp_path, demo.issuers["legacy"], "--client-id", f"own.{language}", "--port", port, language=language)
    source = (tmp_path / FILES[language][0]).read_text()
    defaults = re.findall(r"\b(ISSUER|CLIENT_ID|PORT|GENERATION)\b\W+((?<=['\"])[^'\"]+|\d+)", source)
    assert dict(defaults) == {
        "ISSUER": demo.issuers["legacy"], "CLIENT_ID": f"own.{language}", "PORT": port, "GENERATION": "legacy",
    }  # fmt: skip
    assert values(tmp_path) == {**dict(defaults), "KEYS": "keys.json"}
    assert demo.clients()[f"own.{language}"]["redirect_uris"] == [f"http://127.0.0.1:{port}/callback"]


def test_private_keys_are_their_owners_alone_and_git_ignores_them(demo: RunningDemo, tmp_path: Path) -> None:
    for language, names in FILES.items():
        folder = tmp_path / language
        made(folder, demo.issuers["current"], language=language)
        assert {each.name for each in folder.iterdir()} == {*names, README, "keys.json", "keys.json.public"}
        assert (folder / "keys.json").stat().st_mode & 0o777 == 0o600
        assert "d" not in json.loads((folder / "keys.json.public").read_text())["keys"][0]
        assert "keys.json*" in (folder / ".gitignore").read_text().splitlines()


def test_a_second_folder_is_a_second_client_with_a_port_of_its_own(demo: RunningDemo, tmp_path: Path) -> None:
    """Also if the folder has the same name, and the first does not run."""
    first, second = tmp_path / "one" / "same", tmp_path / "two" / "same"
    for folder in (first, second):
        made(folder, demo.issuers["current"])
    here, there = values(first), values(second)
    assert (here["CLIENT_ID"], there["CLIENT_ID"]) == ("same", "same-2")
    assert here["PORT"] != there["PORT"]
    assert {"same", "same-2"} <= demo.clients().keys()


def test_existing_files_are_named_and_kept(demo: RunningDemo, tmp_path: Path) -> None:
    """Also a link to nowhere; other files are in nobody's way."""
    (tmp_path / README).write_text("mine")
    (tmp_path / "rp.mjs").symlink_to(tmp_path / "nowhere")
    (tmp_path / "notes.txt").write_text("mine, too")
    before = {each.name for each in tmp_path.iterdir()}
    refused = rp_new("--language", "node", "--demo", demo.issuers["current"], "--client-id", "kept", tmp_path)
    assert refused.returncode == 1
    assert "has rp.mjs, README.md already, and nothing is overwritten" in refused.stderr
    assert {each.name for each in tmp_path.iterdir()} == before
    assert (tmp_path / README).read_text() == "mine"
    assert "kept" not in demo.clients()
    (tmp_path / README).unlink()
    (tmp_path / "rp.mjs").unlink()
    made(tmp_path, demo.issuers["current"])
    assert (tmp_path / "notes.txt").read_text() == "mine, too"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--client-id", "demo-rp"), "has a client demo-rp already"),
        (("--client-id", "not an identifier"), "is not an identifier"),
        (("--demo", "http://localhost:9"), "start `corpid demo` in another terminal"),
    ],
)
def test_what_cannot_be_registered_leaves_no_file(
    demo: RunningDemo, tmp_path: Path, options: tuple[str, str], said: str
) -> None:
    refused = rp_new("--language", "python", "--demo", demo.issuers["current"], *options, tmp_path / "new")
    assert refused.returncode == 1
    assert said in refused.stderr
    assert not (tmp_path / "new").exists()


def test_a_provider_that_is_no_demo_is_named(tmp_path: Path, demo: RunningDemo) -> None:
    """Outside developer mode these addresses do not exist."""
    refused = rp_new("--language", "go", "--demo", f"{demo.issuers['current']}/elsewhere", tmp_path / "new")
    assert refused.returncode == 1
    assert "this is not a demo" in refused.stderr
    assert not (tmp_path / "new").exists()
