"""What docstrings and comments name is there: exceptions after "Raises", attributes of modules."""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest

from corpid.rules.audit import AuditAction
from tests.house.source import listed, modules, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

_RAISES: Final = re.compile(r"\bRaises?\b((?:[^.]|\.(?=\w))*)")
_ASIDE: Final = re.compile(r"\([^()]*\)|`[^`]*`")
_EXCEPTION: Final = re.compile(r"(?<![-/'\w.])(?:(\w+)\.)?([A-Z]\w*[a-z]\w*)\b(?![-'/]| \d)")
_PROSE: Final = frozenset({"CorpID", "OAuth", "KiB", "NaN", "Infinity"})
"""names in such a sentence that no class has"""
_VALUES: Final = frozenset(action.value for action in AuditAction) | {"user.name", "user.identity"}
"""written like attributes: actions of the audit, scopes"""
_ATTRIBUTE: Final = re.compile(r"`((?:\w+\.)+)(\w+)`")


@cache
def names() -> dict[str, set[str]]:
    """Module, package or class of the project → what it declares or imports; of several with one name what any has."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for module in modules():
        parent, _, name = module.path.removesuffix("/__init__.py").removesuffix(".py").rpartition("/")
        found[parent.rpartition("/")[2]].add(name)
        found[name] |= declared(module.tree)
        for node in nodes(module.tree):
            if isinstance(node, ast.ClassDef):
                found[node.name] |= declared(node) | {"__init__"}
    del found[""]
    return dict(found)


@cache
def declared(tree: ast.Module | ast.ClassDef) -> set[str]:
    """The names that a module or class binds, or a method of it sets."""
    found: set[str] = set()
    for node in nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {each.asname or each.name for each in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


@cache
def classes() -> frozenset[str]:
    """The classes of the project and of Python, unions of them, and what is imported."""
    return frozenset(dir(builtins)).union(*(declared(module.tree) for module in modules()))


def exists(module: str, name: str) -> bool:
    """Whether a name is one of a module of the project, or of one that can be imported."""
    if not module:
        return name in classes()
    if module in names():
        return name in names()[module]
    try:
        return hasattr(importlib.import_module(module), name)
    except ImportError:
        return False


def unknown_exceptions(docstring: str) -> Iterator[str]:
    """The capitalised names after "Raises" that are no class."""
    for sentence in _RAISES.findall(docstring):
        for module, name in _EXCEPTION.findall(_ASIDE.sub("", sentence)):
            if name not in _PROSE and not exists(module, name):
                yield f"{module}.{name}" if module else name


def unknown_attributes(text: str) -> Iterator[str]:
    """The names in backticks that a module or class of the project lacks."""
    for before, name in _ATTRIBUTE.findall(text):
        of = before.rstrip(".").rpartition(".")[2]
        if name not in names().get(of, {name}) and f"{of}.{name}" not in _VALUES and name != "py":
            yield f"{before}{name}"


def docstrings() -> Iterator[tuple[str, str]]:
    for module in modules():
        for node in nodes(module.tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                line = 1 if isinstance(node, ast.Module) else node.lineno
                yield f"{module.package}/{module.path}:{line}", ast.get_docstring(node) or ""


def test_every_exception_that_a_docstring_names_is_a_class() -> None:
    """Whoever catches what a function raises reads its name there."""
    wrong = [f"{place} {each}" for place, text in docstrings() for each in unknown_exceptions(text)]
    assert not wrong, listed(wrong)


def test_every_attribute_of_a_module_in_backticks_is_there() -> None:
    """A reader searches for it."""
    wrong = [
        f"{module.package}/{module.path} {each}" for module in modules() for each in unknown_attributes(module.text)
    ]
    assert not wrong, listed(wrong)


@pytest.mark.parametrize(
    ("docstring", "unknown"),
    [
        ("Load it. Raises Rejeced, StaleStep.", ["Rejeced"]),
        ("Raises access.Forbiden (D53), and ssl.SSLError if it fails.", ["access.Forbiden"]),
        ("Raise Vanished if it is gone.", ["Vanished"]),
        ("Raises ValueError for a Content-Type, and the errors of Spec 7.1.", []),
        ("Raises access.Forbidden, StoreUnavailable. Source: Nobody", []),
    ],
)
def test_an_exception_that_is_no_class_is_found(docstring: str, unknown: list[str]) -> None:
    assert list(unknown_exceptions(docstring)) == unknown


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("as `stored_forms.seal` made it", ["stored_forms.seal"]),
        ("as `flows.encrypted_values.encrypt_form` made it, of `StoredForm.fields`", []),
        ("`example.com`, `os.fork`", []),
    ],
)
def test_an_attribute_that_a_module_lacks_is_found(text: str, unknown: list[str]) -> None:
    assert list(unknown_attributes(text)) == unknown
