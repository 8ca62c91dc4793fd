"""Rooms stay small, and every name is one of the vocabulary (DESIGN, "The house")."""

from __future__ import annotations

import ast
import re

from tests.house.source import SOURCE, Function, Module, listed, modules

LINES_OF_A_MODULE = 300
LINES_OF_A_FUNCTION = 40

# path → why it may be longer
LONG_MODULES: dict[str, str] = {}
# path::function → why it may be longer
LONG_FUNCTIONS: dict[str, str] = {}

FORBIDDEN = {
    "util", "utils", "helper", "helpers", "common", "manager", "managers", "handler", "handlers", "info", "data",
    "base", "misc", "do", "process",
}  # fmt: skip
# Terms of the protocol and of operation that hold one of these words.
TERMS = re.compile(
    r"auth_?info|authorization_?info|authorization_data|tp_?auth_?info|entity_?info|user_?info|base_?url|base64|base32|data_?dir"
    r"|exception_handlers?|common_passwords",
    re.IGNORECASE,
)
# Names that the standard library gave, to be overridden.
GIVEN = {"handle_data", "data_received"}
# What the specification calls an entity service is a record of the directory; code is no service.
ENTITY_SERVICE = {"Service", "EntityService"}

SOURCE_OF_LAW = re.compile(
    r"RFC \d{3,5}|Spec \d|\bD\d{1,2}\b|\bR-\d|OpenID|FAPI|ISO \d|WCAG|DESIGN|decisions\.md|docs/decisions/\d{4}|docs/directory\.md"
)


def words(name: str) -> list[str]:
    """`AuthInfo_do_it` → what is left of its words once the terms are taken out."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", TERMS.sub("", name))
    return snake.lower().split("_")


def code_lines(function: Function) -> int:
    """The length of a function without its docstring."""
    first = function.body[0]
    documented = ast.get_docstring(function) is not None
    docstring = (first.end_lineno or first.lineno) - first.lineno + 1 if documented else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - docstring


def public_functions(module: Module) -> list[Function]:
    return [
        node
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
    ]


def test_every_module_stays_under_three_hundred_lines() -> None:
    lengths = {module.path: len(module.text.splitlines()) for module in modules()}
    too_long = {path for path, length in lengths.items() if length > LINES_OF_A_MODULE}
    assert too_long == set(LONG_MODULES), listed(sorted(too_long))


def test_every_function_stays_under_forty_lines() -> None:
    too_long = {
        f"{module.path}::{function.name}"
        for module in modules()
        for function in module.functions()
        if code_lines(function) > LINES_OF_A_FUNCTION
    }
    assert too_long == set(LONG_FUNCTIONS), listed(sorted(too_long))


def test_names_of_modules_classes_and_functions_say_what_they_are() -> None:
    """DESIGN, "Vocabulary": the words that are not used."""
    named = [(module.path, part.removesuffix(".py")) for module in modules() for part in module.path.split("/")]
    named += [
        (module.at(node), node.name)
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    vague = [(place, name) for place, name in named if FORBIDDEN.intersection(words(name)) and name not in GIVEN]
    assert not vague, listed(vague)


def test_no_class_or_module_calls_itself_a_service() -> None:
    """DESIGN, "Vocabulary": a service is an entity service."""
    classes = [
        (module.at(node), node.name)
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith("Service") and node.name not in ENTITY_SERVICE
    ]
    rooms = [module.path for module in modules() if module.path.endswith(("_service.py", "/service.py"))]
    assert not classes + rooms, listed([*classes, *rooms])


def test_every_module_says_what_it_is() -> None:
    silent = [module.path for module in modules() if not ast.get_docstring(module.tree)]
    assert not silent, listed(silent)


def test_every_folder_with_code_is_a_package() -> None:
    """import-linter and the wheel see packages only."""
    folders = {path.parent for path in SOURCE.rglob("*.py") if "migrations" not in path.parts}
    bare = [folder for folder in sorted(folders) if not (folder / "__init__.py").exists()]
    assert not bare, listed(bare)


def test_every_public_function_of_the_law_ends_its_docstring_with_its_source() -> None:
    """House rule: what comes in and out, what is raised, and where it is written."""
    unsourced = [
        f"{module.at(function)} {function.name}"
        for module in modules()
        if module.room in {"protocol", "directory", "flows", "jose"}
        for function in public_functions(module)
        if not SOURCE_OF_LAW.search((ast.get_docstring(function) or "")[-160:])
    ]
    assert not unsourced, listed(unsourced)
