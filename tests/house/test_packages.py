"""Modules and packages (docs/architecture.md, "Layers" and "Packages")."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from tests.house.source import KIT, SOURCE, Module, listed, modules, nodes

if TYPE_CHECKING:
    from collections.abc import Container


SOURCE_OF_LAW = re.compile(
    r"RFC \d{3,5}|Spec [\d\x22]|\bD\d{1,2}\b|\bR-\d|OpenID|FAPI|ISO \d|WCAG|(?:SECURITY|CONTRIBUTING)\.md|docs/[\w/-]+"
)

WORDS_OF_A_FIRST_LINE = 12
NO_OPENING = re.compile(r"(?:What|Whether|Where|Which|How|Who|Whoever)\b")
CITED = re.compile(rf"\s*\([^()]*(?:{SOURCE_OF_LAW.pattern}|§|NIST|WebAuthn)[^()]*\)|\s*Source:.*")


def name_of(module: Module) -> str:
    """The module's name as it is imported."""
    path = module.path.removesuffix(".py").removesuffix("__init__").removesuffix("/")
    return ".".join((module.package, *path.split("/"))) if path else module.package


def imports_of(module: Module, names: Container[str]) -> set[str]:
    """The modules that a module imports; `from package import name` means the module of that name, if there is one."""
    return {
        full if (full := f"{node.module}.{alias.name}") in names else node.module
        for node in nodes(module.tree)
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module in names
        for alias in node.names
    }


def test_no_module_imports_itself_through_others() -> None:
    """docs/architecture.md, "Layers": no circle of files, not even of those that only type checking imports."""
    names = {name_of(module): module for module in modules()}
    imported = {name: imports_of(module, names) - {name} for name, module in names.items()}
    reachable: dict[str, set[str]] = {}
    for name in names:
        seen: set[str] = set()
        ahead = set(imported[name])
        while ahead:
            each = ahead.pop()
            seen.add(each)
            ahead |= imported[each] - seen
        reachable[name] = seen
    circular = sorted(name for name, seen in reachable.items() if name in seen)
    assert not circular, listed(circular)


def test_production_names_no_module_of_the_developer_kit() -> None:
    """docs/decisions/0038: not even in a text, from which it could be loaded."""
    naming = [module.path for module in modules() if module.package == "corpid" and "corpid_dev" in module.text]
    assert not naming, listed(naming)


def test_every_module_says_what_it_is() -> None:
    silent = [module.path for module in modules() if not ast.get_docstring(module.tree)]
    assert not silent, listed(silent)


def test_every_docstring_opens_with_a_short_line_that_asks_nothing() -> None:
    """CONTRIBUTING.md, "Style": a noun phrase or an imperative of at most 12 words, its sources not counted."""
    firsts = [
        (f"{module.path}: {first}", CITED.sub("", first))
        for module in modules()
        for node in nodes(module.tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (first := (ast.get_docstring(node) or "").partition("\n")[0])
    ]
    assert firsts
    wrong = [at for at, line in firsts if len(line.split()) > WORDS_OF_A_FIRST_LINE or NO_OPENING.match(line)]
    assert not wrong, f"begin with a noun phrase or an imperative of at most 12 words: {listed(wrong)}"


def test_every_folder_with_code_is_a_package() -> None:
    """import-linter and the wheel see packages only."""
    folders = {path.parent for each in (SOURCE, KIT) for path in each.rglob("*.py") if "migrations" not in path.parts}
    bare = [folder for folder in sorted(folders) if not (folder / "__init__.py").exists()]
    assert not bare, listed(bare)


def test_the_theory_of_data_loss_names_every_case() -> None:
    """docs/reliability.md: the file of lost data opens with what is noticed, and by which part of it."""
    text = (SOURCE / "stores" / "data_loss.py").read_text(encoding="utf-8")
    tree = ast.parse(text)
    theory = ast.get_docstring(tree) or ""
    named = re.findall(r"^- `(\w+)`:", theory, re.MULTILINE)
    assert named == re.findall(r"^# `(\w+)`:", text, re.MULTILINE), "each part opens with a comment of its case"
    assert set(named) <= {getattr(node, "name", "") for node in tree.body}
    engines = re.findall(r"stores\.valkey\.(\w+)", theory)
    assert engines
    assert all((SOURCE / "stores" / "valkey" / f"{name}.py").exists() for name in engines)
