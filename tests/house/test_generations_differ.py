"""A test that asks which generation it runs in runs in all of them in `make test` (tests/world/generations.py)."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = Path(__file__).parents[1]


def marks(body: list[ast.stmt], function: ast.AST) -> Iterator[ast.Call]:
    """The marks `generations` of a test; without one, its module's."""
    own = [*calls(getattr(function, "decorator_list", []))]
    module = [
        each.value for each in body if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "pytestmark"
    ]
    yield from own or calls(module)


def calls(found: list[ast.expr]) -> Iterator[ast.Call]:
    for each in found:
        for node in ast.walk(each):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.generations":
                yield node


def asks(function: ast.AST) -> bool:
    """Whether it compares the generation, or looks something up by it."""
    looked_at = [
        part
        for node in ast.walk(function)
        if isinstance(node, ast.Compare | ast.Subscript)
        for part in ([node.slice] if isinstance(node, ast.Subscript) else [node.left, *node.comparators])
    ]
    return any(
        isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).endswith(("speaking", "interface.name"))
        for part in looked_at
        for node in ast.walk(part)
    )


def test_a_test_that_asks_for_its_generation_runs_in_each_in_make_test() -> None:
    """Else a branch for another generation than the current one stands in no run that everybody makes."""
    seen, wrong = 0, []
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "speaking" not in text and "mark.generations" not in text:
            continue
        body = ast.parse(text).body
        for function in body:
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and function.name.startswith("test_"):
                for mark in marks(body, function):
                    several = len(mark.args) > 1 or any(isinstance(each, ast.Starred) for each in mark.args)
                    if several and asks(function):
                        seen += 1
                        if "differ" not in {each.arg for each in mark.keywords}:
                            wrong.append(f"{path.relative_to(TESTS)}: {function.name}")
    assert wrong == []
    assert seen > 5
