"""docs/observability.md says what is told: neither less nor more."""

from __future__ import annotations

import ast
import re

from corpid.web.telemetry.access_log import FIELDS
from corpid.web.telemetry.spans import ATTRIBUTES
from tests.house.source import documents, modules, nodes
from tests.house.test_deploy import ALERTS, exported

LOGGING = (".info", ".warning", ".error", "_warn", "_log", "_report")
PASSED_ON = ("_warn", "_log", "_report")
"""functions that are given an event and its detail"""
DOCUMENT = documents()["docs/observability.md"]


def rows(heading: str) -> list[list[str]]:
    """The names in backticks in each cell of the table below a heading."""
    section = DOCUMENT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [re.findall(r"`([^`]+)`", cell) for line in lines for cell in line.strip("|").split("|")[:2]]


def test_every_metric_is_listed_with_its_labels() -> None:
    cells = rows("Metrics")
    listed = {name: set(labels) for [name], labels in zip(cells[::2], cells[1::2], strict=True)}
    found: dict[str, set[str]] = {}
    for series, labels in exported().items():
        family = re.sub(r"_(bucket|sum|count)$", "", series)
        found.setdefault(family, set()).update(labels - {"le"})
    assert listed == found


def test_every_alert_is_listed_with_the_failures_that_it_notices() -> None:
    rules = [rule["alert"] for group in ALERTS["groups"] for rule in group["rules"]]
    section = DOCUMENT.split("\n### Alerts\n")[1].split("\n### ")[0]
    assert sorted(set(re.findall(r"`(Corpid\w+)`", section))) == sorted(rules)


def test_every_field_of_the_log_is_listed() -> None:
    """D48."""
    assert sorted(name for names in rows("Log")[::2] for name in names) == sorted(FIELDS)


def test_every_attribute_of_ours_in_a_span_is_named() -> None:
    section = DOCUMENT.split("\n## Traces\n")[1]
    ours = [name for name in ATTRIBUTES if name.startswith(("corpid.", "db.", "error."))]
    assert [name for name in ours if f"`{name}`" not in section] == []


def _logged(node: ast.Call) -> set[str]:
    """The events that a call may log."""
    called = ast.unparse(node.func)
    if not node.args or not called.endswith(LOGGING) or not ("log" in called or called.endswith(PASSED_ON)):
        return set()
    constants = {each.value for each in ast.walk(node.args[0]) if isinstance(each, ast.Constant)}
    return {each for each in constants if isinstance(each, str) and re.fullmatch("[a-z]+([_ ][a-z]+)*", each)}


def _named(node: ast.Call, tree: ast.AST) -> set[str]:
    """The events that a call logs by an attribute of its class: what subclasses give it."""
    if not node.args or not ast.unparse(node.func).endswith("._log") or not isinstance(node.args[0], ast.Attribute):
        return set()
    found = set[str]()
    for each in nodes(tree):
        if isinstance(each, ast.Assign) and isinstance(names := each.targets[0], ast.Tuple):
            given = dict(zip(map(ast.unparse, names.elts), getattr(each.value, "elts", ()), strict=False))
            if isinstance(value := given.get(node.args[0].attr), ast.Constant):
                found.add(str(value.value))
    return found


def test_every_event_of_the_log_is_listed() -> None:
    """D48: operators filter and alert by these names."""
    found = set[str]()
    for module in modules():
        if module.layer not in {"rules", "jose"} and "schema" not in module.path:
            calls = [node for node in nodes(module.tree) if isinstance(node, ast.Call)]
            found |= {event for node in calls for event in _logged(node) | _named(node, module.tree)}
    assert {event for names in rows("Events")[::2] for event in names} == found - {"request"}
