"""The program of a library as a process: it prints where to sign in, reads the callback, prints what it learned."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.interop.examples import EXAMPLES, OFFLINE, installed
from tests.interop.library_matrix.declarations import FOLDER, ROOT, Library
from tests.interop.node_process import NODE
from tests.interop.running import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path


class RefusedByProgramError(Exception):
    """The program read the callback and then failed; its last words."""


class EndedEarlyError(Exception):
    """The program ended before it said where to sign in; its last words."""


@dataclass
class Program:
    """A relying party in the middle of a sign-in."""

    process: subprocess.Popen[str]
    address: str

    def finish(self, callback: str) -> dict[str, Any]:
        """Claims and userinfo. Raises RefusedByProgramError."""
        output, errors = self.process.communicate(f"{callback}\n", PATIENCE)
        if self.process.returncode or not output.startswith("{"):
            raise RefusedByProgramError(errors or output)
        found: dict[str, Any] = json.loads(output)
        return found


def built(library: Library) -> list[str]:
    """The command that runs its program; the test is skipped where the toolchain is missing."""
    return COMMANDS[library.program.suffix](library.program)


def takes_long_to_build(library: Library) -> bool:
    """Whether what it needs is fetched and compiled for minutes."""
    return library.program.suffix in {".go", ".rs"} or library.program.parent.name == "spring"


@contextmanager
def begun(library: Library, told: Mapping[str, Any], folder: Path) -> Iterator[Program]:
    """Start the program, up to the address for the browser. Raises EndedEarlyError."""
    file = folder / "rp.json"
    file.write_text(json.dumps(told))
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([*built(library), str(file)], text=True, env=environment, **pipes) as process:
        try:
            address = process.stdout.readline().strip()  # type: ignore[union-attr]
            if not address.startswith("http"):
                raise EndedEarlyError(address + process.communicate(timeout=PATIENCE)[1])
            yield Program(process, address)
        finally:
            process.terminate()


@cache
def _built_with_go(_: Path) -> list[str]:
    installed("libraries/go", "go", probe=("go", "list", "-m"))
    target = ROOT / "build" / "libraries" / "go-rp"
    command = ["go", "build", "-mod=readonly", "-o", str(target), "."]
    subprocess.run(command, cwd=FOLDER / "go", env=OFFLINE, check=True, timeout=PATIENCE)
    return [str(target)]


@cache
def _built_with_cargo(_: Path) -> list[str]:
    installed("libraries/rust", "cargo", probe=("cargo", "--version"))
    target = ROOT / "build" / "libraries" / "rust"
    command = ["cargo", "build", "--quiet", "--locked", "--offline", "--target-dir", str(target)]
    subprocess.run(command, cwd=FOLDER / "rust", check=True, timeout=10 * PATIENCE)
    return [str(target / "debug" / "rp")]


def _run_by_java(program: Path) -> list[str]:
    installed("libraries/java", "java", "mvn", probe=("java", "--version"))
    return ["java", "-cp", f"{EXAMPLES}/java/lib/*", str(program)]


@cache
def _compiled_with_spring(program: Path) -> list[str]:
    installed("libraries/spring", "java", "mvn", probe=("java", "--version"))
    target = ROOT / "build" / "libraries" / "spring"
    libraries = f"{program.parent}/lib/*"
    subprocess.run(["javac", "-cp", libraries, "-d", str(target), str(program)], check=True, timeout=PATIENCE)
    return ["java", "-cp", f"{target}:{libraries}", program.stem]


def _by_java(program: Path) -> list[str]:
    return _compiled_with_spring(program) if program.parent.name == "spring" else _run_by_java(program)


COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    ".mjs": lambda program: [str(NODE), str(program)],
    ".py": lambda program: [sys.executable, str(program)],
    ".go": _built_with_go,
    ".rs": _built_with_cargo,
    ".java": _by_java,
}
"""how the program of a language is run"""
