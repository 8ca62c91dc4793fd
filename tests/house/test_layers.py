"""The layers (docs/architecture.md, "Layers"): imports point down only."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.house.source import ROOT, listed, modules, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

TYPES_ALONE = ("corpid.stores", "corpid.outbound")


def loaded(tree: ast.AST) -> Iterator[ast.ImportFrom | ast.Import]:
    """The imports that a running program carries out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            yield node
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield from loaded(node)


@pytest.mark.full
def test_every_import_contract_holds() -> None:
    lint_imports = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run(
        [lint_imports, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_flows_and_pages_import_stores_and_outbound_for_types_alone() -> None:
    """They are given both, so that they need no database and a command loads what it uses."""
    wrong = [
        f"{module.at(node)} {name}"
        for module in modules()
        if module.package == "corpid" and module.path.startswith(("flows/", "web/"))
        for node in loaded(module.tree)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names])
        if name.startswith(TYPES_ALONE)
    ]
    assert not wrong, listed(wrong)


def test_a_server_loads_every_part_of_the_registry_before_it_forks() -> None:
    """docs/decisions/0036: `load_stores` names each module that a part is in."""
    [tree] = [module.tree for module in modules() if module.path == "stores/sql/registry.py"]
    [loading] = [
        node for node in nodes(tree) if isinstance(node, ast.ImportFrom) and node.module == "corpid.stores.sql"
    ]
    named = {
        node.attr
        for node in nodes(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sql"
    }
    assert {alias.name for alias in loading.names} == named
