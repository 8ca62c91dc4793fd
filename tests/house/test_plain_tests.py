"""Tests are plain functions: an asynchronous one awaits, and a synchronous one runs no coroutine of its own."""

from __future__ import annotations

import ast

from scripts.report import sizes, statements
from tests.house.source import ROOT, listed


def test_no_synchronous_test_holds_a_coroutine() -> None:
    """CONTRIBUTING "Tests": anyio runs `async def test_…`; what a synchronous test hands on is a function of its module."""
    found = [
        f"{path.relative_to(ROOT)}:{test.lineno} {test.name}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if "    async def" in (text := path.read_text(encoding="utf-8"))
        for test in ast.walk(ast.parse(text))
        if isinstance(test, ast.FunctionDef)
        and test.name.startswith("test_")
        and any(isinstance(each, ast.AsyncFunctionDef) for each in ast.walk(test))
    ]
    assert not found, listed(found)


def test_a_size_counts_statements_and_no_docstrings() -> None:
    """CONTRIBUTING "Tests": `make report`."""
    assert (
        statements('"""A module."""\n\nNAME = 1\n"""a name"""\n\n\ndef one():\n    """One."""\n    return NAME\n') == 3
    )
    assert sizes(ROOT / "src" / "corpid")["rules"][0] == len(list((ROOT / "src" / "corpid" / "rules").rglob("*.py")))
