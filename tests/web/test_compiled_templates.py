"""Templates are compiled once, and only what nobody else can have written is run (docs/decisions/0036)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 60
LANGUAGES = ("en", "zh-Hans", "ms", "ta")
COUNTED = """
import sys
compiled = []
sys.addaudithook(
    lambda event, about: event == "compile" and compiled.append(str(about[1])) if str(about[1:2]).count(".html") else None
)
"""
PROGRAM = f"""{COUNTED}
import hashlib, json
from corpid.web.pages import compilation
from corpid.texts import phrase
from corpid.web.pages.components import Page
from corpid.web.pages.components import BARE
from corpid.web.pages.rendering import Renderer
sys.pycache_prefix = sys.argv[1]  # from here on: the compiled modules stay where they are
page = Renderer().render(Page(frame=BARE, heading=phrase("A page"), parts=()))
print(json.dumps([len(compiled), hashlib.sha256(page).hexdigest(), str(compilation.folder())]))
"""
"""how many templates are compiled until a page is there, the page, and where they are kept"""


class Programs:
    """Processes that keep what they compile below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.first, self.page, self.kept = self.run()

    def start(self, *options: str, folder: Path | None = None) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        command = [sys.executable, *options, "-c", PROGRAM, str(folder or self.folder)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    def run(self, *options: str, folder: Path | None = None) -> tuple[int, str, Path]:
        return self.end(self.start(*options, folder=folder))

    @staticmethod
    def end(process: subprocess.Popen[str]) -> tuple[int, str, Path]:
        said, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 0
        compiled, page, kept = json.loads(said)
        return compiled, page, Path(kept)

    def compiled(self, folder: Path | None = None) -> int:
        """How many a further process compiles; its page is that of the first."""
        number, page, _ = self.run(folder=folder)
        assert page == self.page
        return number


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(tmp_path_factory.mktemp("compiled"))


def files(programs: Programs) -> list[Path]:
    return sorted(programs.kept.iterdir())


@pytest.mark.full
def test_a_second_process_compiles_nothing_and_shows_the_same(programs: Programs) -> None:
    assert programs.first > 50
    assert programs.compiled() == 0
    assert len(files(programs)) > programs.first


def test_nobody_else_can_write_what_is_kept(programs: Programs) -> None:
    assert not [path for path in (programs.kept, *files(programs)) if path.stat().st_mode & 0o022]
    assert not [path for path in files(programs) if path.name.startswith(".")], "unfinished"


def open_the_folder(kept: Path) -> None:
    kept.chmod(0o777)


def link_the_folder(kept: Path) -> None:
    kept.symlink_to(shutil.move(kept, kept.with_name("moved")))


def open_it(path: Path, _: bytes) -> None:
    path.chmod(0o666)


def link_it(path: Path, _: bytes) -> None:
    path.symlink_to(shutil.move(path, path.with_name(f"elsewhere-{path.name}")))


def change_it(path: Path, _: bytes) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def cut_it(path: Path, _: bytes) -> None:
    path.write_bytes(path.read_bytes()[:40])


def replace_it(path: Path, another: bytes) -> None:
    path.write_bytes(another)


def harm_every_file(kept: Path) -> None:
    """Each in one of these ways, in turn."""
    paths = sorted(kept.iterdir())
    others = [path.read_bytes() for path in paths[1:] + paths[:1]]
    for path, another, harm in zip(
        paths, others, cycle((open_it, link_it, change_it, cut_it, replace_it)), strict=False
    ):
        harm(path, another)


@pytest.mark.full
@pytest.mark.parametrize("harm", [open_the_folder, link_the_folder, harm_every_file])
def test_what_others_could_have_written_is_not_run(
    programs: Programs, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    """It is compiled again, and the page is the same."""
    copied = tmp_path / programs.kept.relative_to(programs.folder)
    shutil.copytree(programs.kept, copied)
    assert programs.compiled(tmp_path) == 0
    harm(copied)
    assert programs.compiled(tmp_path) == programs.first


def test_files_of_somebody_else_are_not_run() -> None:
    """Judged by what the system says of a file, since a test cannot give one away."""
    from corpid.web.pages import compilation

    own, is_directory = Path(__file__).parent.stat(), (lambda _: True)
    for user, taken in ((own.st_uid, True), (0, True), (own.st_uid + 4711, False)):
        found = os.stat_result((own.st_mode & ~0o022, *own[1:4], user, *own[5:]))
        assert compilation._is_own(found, is_directory) is taken


@pytest.mark.full
def test_several_processes_that_start_at_once_keep_whole_files(programs: Programs) -> None:
    shutil.rmtree(programs.kept)
    together = [programs.start() for _ in range(3)]
    assert {programs.end(each)[1] for each in together} == {programs.page}
    assert programs.compiled() == 0
    assert not [path for path in files(programs) if path.name.startswith(".")]


@pytest.mark.full
def test_a_process_that_writes_no_bytecode_keeps_nothing(programs: Programs, tmp_path: Path) -> None:
    """PYTHONDONTWRITEBYTECODE, as in the container."""
    number, page, kept = programs.run("-B", folder=tmp_path)
    assert (number, page, kept.exists()) == (programs.first, programs.page, False)


@pytest.mark.full
def test_where_nothing_can_be_written_templates_are_compiled_in_memory(programs: Programs, tmp_path: Path) -> None:
    """As on a read-only disk."""
    (tmp_path / "file").write_bytes(b"")
    number, page, _ = programs.run(folder=tmp_path / "file")
    assert (number, page) == (programs.first, programs.page)


WHOLE = f"""{COUNTED}
from corpid.web.pages.rendering import Renderer
from corpid.web.pages.translations import LANGUAGES
sys.pycache_prefix = sys.argv[1]  # from here on: the compiled modules stay where they are
renderer = Renderer(developer_mode=True, added="".join(sys.argv[2:]))
for language in LANGUAGES:
    renderer.compile(language)
print(len(compiled))
"""
"""how many templates are compiled until every page of every language is there"""
COMMAND = f"""{COUNTED}
import runpy
sys.pycache_prefix = sys.argv.pop(1)
sys.argv[0] = "pages"
runpy.run_module("corpid.web.pages", run_name="__main__")
print(len(compiled))
"""
"""`python -m corpid.web.pages`, and how many templates it compiles"""


class Installed(NamedTuple):
    """What the command did for the program alone, and then with the developer kit: as the image with the kit is made."""

    folder: Path
    own: int
    """how many templates it compiled for the program"""
    files: tuple[str, ...]
    """which it kept of those"""
    more: int
    """how many it compiled for the kit beside them"""


def number(program: str, folder: Path, *package: str) -> int:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder), *package],
        env=environment, capture_output=True, text=True, check=True, timeout=SECONDS,
    )  # fmt: skip
    return int(done.stdout)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    own = number(COMMAND, folder)
    kept = tuple(path.name for path in folder.rglob("*.pyc"))
    return Installed(folder, own, kept, number(COMMAND, folder, "corpid_dev"))


@pytest.mark.full
def test_a_command_compiles_the_templates_of_every_language(programs: Programs, installed: Installed) -> None:
    """For a program that is installed by one user and run by another."""
    assert programs.compiled(installed.folder) == 0
    found = {tag: len([name for name in installed.files if name.startswith(f"{tag}-")]) for tag in LANGUAGES}
    assert len(set(found.values())) == 1, found
    assert found["en"] > 50
    assert [name for name in installed.files if name.startswith("emails-")]


@pytest.mark.full
def test_a_server_and_a_demo_of_one_environment_keep_what_both_compile(installed: Installed) -> None:
    """Their texts are not the same, except in English."""
    assert installed.own > installed.more > installed.own // 2
    assert (number(WHOLE, installed.folder), number(WHOLE, installed.folder, "corpid_dev")) == (0, 0)


@pytest.mark.full
def test_the_command_compiles_the_developer_kits_templates_beside_those_of_the_program(installed: Installed) -> None:
    """As the image with the developer kit is made."""
    assert number(COMMAND, installed.folder, "corpid_dev") == 0
