"""The project's own files, parsed once, for the tests of the house."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "corpid"
KIT = ROOT / "src" / "corpid_dev"

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A module of src/corpid or src/corpid_dev; `path` is relative to that, with slashes."""

    package: str
    path: str
    text: str
    tree: ast.Module

    @property
    def layer(self) -> str:
        """The first part of the path: `flows`, `web`, `app.py`."""
        return self.path.split("/", maxsplit=1)[0]

    def functions(self) -> Iterator[Function]:
        for node in nodes(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node

    def at(self, node: ast.expr | ast.stmt | ast.alias) -> str:
        return f"{self.package}/{self.path}:{node.lineno}"


def listed(found: Iterable[object]) -> str:
    """What a test found, one a line, for its message."""
    return "\n" + "\n".join(str(one) for one in found)


@cache
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Everything in a tree, collected once: twenty tests walk through every module."""
    return tuple(ast.walk(tree))


@cache
def modules() -> tuple[Module, ...]:
    return tuple(
        Module(package=source.name, path=path.relative_to(source).as_posix(), text=text, tree=ast.parse(text))
        for source in (SOURCE, KIT)
        for path in sorted(source.rglob("*.py"))
        for text in (path.read_text(encoding="utf-8"),)
    )


@cache
def documents() -> dict[str, str]:
    """Path → text of everything written for readers."""
    paths = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(paths)
        if "node_modules" not in path.parts
    }


def shown_commands(text: str, program: str) -> Iterator[str]:
    """Every `program …` in a code span, or at the start of a line of a code block."""
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    for line in [*lines, *re.findall(r"`([^`\n]+)`", prose)]:
        bare = re.sub(r"^(\$ )?([A-Z_]+=\S+ )*(\S*/)?", "", line)
        if bare.startswith(f"{program} "):
            yield bare.split("#", maxsplit=1)[0].strip()
