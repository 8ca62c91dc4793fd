"""Properties of the code that a reader relies on and no type can hold."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tests.house.source import Module, listed, modules

if TYPE_CHECKING:
    from collections.abc import Iterator

GENERATIONS = {"LEGACY", "INTERMEDIATE", "CURRENT", "FAPI2"}
# protocol/generations.py defines them; settings, the demo and the commands name them
NAMES_GENERATIONS = {"protocol/generations.py", "settings", "sandbox", "cli"}

# Who may look at Host at all: the check that refuses a foreign one (D35). Who may look at a forwarding
# header: the reading of the caller's address behind a trusted proxy (D47). Neither builds a URL.
# request_reader.py puts the authority of an absolute request target in its place (RFC 9112 §3.2.2).
READS_HOST = {"web/middleware.py", "web/request_reader.py"}
READS_ADDRESS = {"web/addresses.py"}
BUILDS_FROM_HOST = {"base_url", "url_for"}


def is_generation(node: ast.expr) -> bool:
    """`generation`, `x.generation`, `policy.pushed`, `policy.query`, and the `.name` of one."""
    if isinstance(node, ast.Attribute) and node.attr == "name":
        return is_generation(node.value)
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in {"generation", "pushed", "query"}


def asks_whether_there_is_one(node: ast.Compare) -> bool:
    """`policy.query is None`: whether a generation is served tells none from another."""
    return all(isinstance(side, ast.Constant) and side.value is None for side in node.comparators)


def branches_on_a_generation(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare) and not asks_whether_there_is_one(node):
        equal = any(isinstance(operator, ast.Eq | ast.NotEq | ast.Is | ast.IsNot) for operator in node.ops)
        return equal and any(is_generation(side) for side in (node.left, *node.comparators))
    return isinstance(node, ast.Match) and is_generation(node.subject)


def header_names(module: Module) -> Iterator[tuple[str, ast.Constant]]:
    """Every string or bytes constant of a module, lowered, as text."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.lower(), node
        elif isinstance(node, ast.Constant) and isinstance(node.value, bytes):
            yield node.value.decode("latin-1").lower(), node


def test_only_the_generations_module_tells_generations_apart() -> None:
    """decisions.md, "Generations": data, never a branch."""
    named = [
        module.at(node)
        for module in modules()
        if module.path not in NAMES_GENERATIONS and module.room not in NAMES_GENERATIONS
        for node in ast.walk(module.tree)
        if (isinstance(node, ast.Name) and node.id in GENERATIONS)
        or (isinstance(node, ast.Attribute) and node.attr in GENERATIONS)
        or (isinstance(node, ast.alias) and node.name in GENERATIONS)
    ]
    compared = [
        module.at(node)
        for module in modules()
        if module.path != "protocol/generations.py"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.expr) and branches_on_a_generation(node)
    ]
    matched = [
        module.at(node)
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Match) and branches_on_a_generation(node)
    ]
    found = named + compared + matched
    assert not found, listed(found)


def test_no_forwarding_header_tells_where_the_provider_is() -> None:
    """D32: every absolute URL is built from base_url."""
    wheres = ("x-forwarded-host", "x-forwarded-proto", "x-forwarded-port", "x-forwarded-prefix", "x-original-url")
    found = [module.at(node) for module in modules() for value, node in header_names(module) if value in wheres]
    assert not found, listed(found)


def test_only_the_checks_of_host_and_address_read_those_headers() -> None:
    """D35, D47."""
    hosts = [
        module.at(node)
        for module in modules()
        if module.room == "web" and module.path not in READS_HOST
        for value, node in header_names(module)
        if value == "host"
    ]
    addresses = [
        module.at(node)
        for module in modules()
        if module.path not in READS_ADDRESS
        for value, node in header_names(module)
        if value in {"forwarded", "x-forwarded-for", "x-real-ip"}
    ]
    assert not hosts + addresses, listed(hosts + addresses)


def test_no_page_or_endpoint_asks_the_request_for_its_own_address() -> None:
    """D32: Starlette derives request.url, request.base_url and url_for from Host; of a URL only its path is read."""
    found = []
    for module in (module for module in modules() if module.room == "web"):
        parts = {
            id(node.value)
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Attribute) and node.attr in {"path", "query"}
        }
        found += [
            module.at(node)
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in {"request", "connection", "conn"}
            and (node.attr in BUILDS_FROM_HOST or (node.attr == "url" and id(node) not in parts))
        ]
    assert not found, listed(found)


def test_uvicorn_never_rewrites_scheme_or_address_from_headers() -> None:
    """D32, D47: uvicorn trusts X-Forwarded-* from loopback unless told otherwise."""
    calls = [
        (module.at(node), {keyword.arg: keyword.value for keyword in node.keywords})
        for module in modules()
        if "import uvicorn" in module.text or "from uvicorn" in module.text
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"Config", "uvicorn.Config", "uvicorn.run"}
    ]
    trusting = [
        place
        for place, keywords in calls
        if not isinstance(value := keywords.get("proxy_headers"), ast.Constant) or value.value is not False
    ]
    assert calls, "nothing starts uvicorn under the names that this test looks for"
    assert not trusting, listed(trusting)
