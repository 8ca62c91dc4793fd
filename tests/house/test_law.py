"""Properties of the code that a reader relies on and no type can hold."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeAlias

import pytest

from corpid.rules.oauth.generations import GENERATIONS
from tests.house.source import Module, listed, modules, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

Located: TypeAlias = "ast.expr | ast.stmt | ast.alias"

# rules/oauth/generations.py defines the generations; settings, the demo and the commands name them
NAMES_GENERATIONS = {"rules/oauth/generations.py", "settings", "cli", "demo", "readiness", "relying_party", "testing"}
RECORDS = {name.upper() for name in GENERATIONS}
TELLING = {"name", "code_prefix", "scheme"}
TELLING_VALUES = {getattr(each, field) for each in GENERATIONS.values() for field in TELLING}

# Who may look at Host at all: the check that refuses a foreign one (D35). Who may look at a forwarding
# header: the reading of the caller's address behind a trusted proxy (D47). Neither builds a URL.
# request_reader.py puts the authority of an absolute request target in its place (RFC 9112 §3.2.2).
READS_HOST = {"web/http/middleware.py", "web/http/connection.py"}
# Probes of the doctor report the headers to it, and nothing goes by them.
READS_ADDRESS = {"web/http/addresses.py", "rules/probes.py", "cli/doctor/request_checks.py"}
BUILDS_FROM_HOST = {"base_url", "url_for"}

# The commands' output, and the log, whose lines are escaped ASCII.
MAY_PRINT = {"cli/output.py", "web/telemetry/access_log.py"}
PRINTING = {"print", "echo", "secho", "print_exc", "print_exception"}
STREAMS = {"stdout", "stderr"}


def is_generation(node: ast.expr) -> bool:
    """`generation`, `x.generation`, `policy.pushed`, `policy.query`, and what tells one from another: `.name` of one."""
    if isinstance(node, ast.Attribute) and node.attr in TELLING:
        return is_generation(node.value)
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in {"generation", "pushed", "query"}


def asks_whether_there_is_one(node: ast.Compare) -> bool:
    """`policy.query is None`: whether a generation is served tells none from another."""
    return all(isinstance(side, ast.Constant) and side.value is None for side in node.comparators)


def written_out(node: ast.expr) -> list[ast.expr]:
    """What stands in a container that is written out, or in a call of one; else nothing."""
    if isinstance(node, ast.Call):
        return [each for argument in node.args for each in written_out(argument)]
    if isinstance(node, ast.Dict):
        return [key for key in node.keys if key is not None]
    return list(node.elts) if isinstance(node, ast.Tuple | ast.List | ast.Set) else []


def compares_a_generation(node: ast.AST) -> bool:
    """Also membership, in what is written out: `in client.generations` asks a record, and is data."""
    if not isinstance(node, ast.Compare) or asks_whether_there_is_one(node):
        return False
    for left, operator, right in zip((node.left, *node.comparators), node.ops, node.comparators, strict=False):
        inside = written_out(right)
        if isinstance(operator, ast.In | ast.NotIn):
            looked_for = is_generation(left) and (bool(inside) or isinstance(right, ast.Constant))
            if looked_for or any(is_generation(each) for each in inside):
                return True
        elif is_generation(left) or is_generation(right):
            return True
    return False


def branches_on_a_generation(node: ast.AST) -> bool:
    """A comparison, a match, or a look at how its name begins."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in {"startswith", "endswith"} and is_generation(node.func.value)
    return compares_a_generation(node) or (isinstance(node, ast.Match) and is_generation(node.subject))


def compares_what_tells_one_apart(node: ast.AST) -> bool:
    """`each.scheme == "Bearer"`, whatever `each` is called."""
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    sides += [each for side in sides for each in written_out(side)]
    values = {side.value for side in sides if isinstance(side, ast.Constant)}
    told = any(isinstance(side, ast.Attribute) and side.attr in TELLING for side in sides)
    return told and not values.isdisjoint(TELLING_VALUES)


def unspoken(tree: ast.AST) -> set[int]:
    """The constants that decide nothing: docstrings, and names of attributes in `__slots__`."""
    quiet: set[int] = set()
    for node in nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            quiet.add(id(node.value))
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__slots__"]:
            quiet |= {id(each) for each in written_out(node.value)}
    return quiet


def naming(tree: ast.AST) -> Iterator[Located]:
    """Where a module says which generation it means."""
    quiet = unspoken(tree)
    for node in nodes(tree):
        if (
            (isinstance(node, ast.Name) and node.id in RECORDS)
            or (isinstance(node, ast.Attribute) and node.attr in RECORDS)
            or (isinstance(node, ast.alias) and node.name in RECORDS)
            or (isinstance(node, ast.Constant) and node.value in GENERATIONS and id(node) not in quiet)
            or compares_what_tells_one_apart(node)
        ):
            yield node  # type: ignore[misc]  # each of these has a place


def branching(tree: ast.AST) -> Iterator[Located]:
    """Where a module does something else for one generation than for another."""
    for node in nodes(tree):
        if branches_on_a_generation(node):
            yield node  # type: ignore[misc]  # each of these has a place


def header_names(module: Module) -> Iterator[tuple[str, ast.Constant]]:
    """Every string or bytes constant of a module, lowered, as text."""
    for node in nodes(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.lower(), node
        elif isinstance(node, ast.Constant) and isinstance(node.value, bytes):
            yield node.value.decode("latin-1").lower(), node


@pytest.mark.parametrize(
    "snippet",
    [
        "if generation == x: pass",
        "if request.generation != policy.pushed.name: pass",
        "if policy.query is generation: pass",
        "y = 1 if request.generation in ('legacy',) else 2",
        "if request.generation in (policy.query.name, x): pass",
        "if x not in {generation.name}: pass",
        "if generation.name in {x, y}: pass",
        "if generation.name in frozenset((x, y)): pass",
        "if generation in 'legacy': pass",
        "if each.name == 'legacy': pass",
        "if generation.code_prefix == 'l': pass",
        "if each.code_prefix in ('l', 'c'): pass",
        "if generation.scheme == 'Bearer': pass",
        "if each.scheme in ['Bearer']: pass",
        "if 'legacy' in client.generations: pass",
        "if (a, 'fapi2') in counted: pass",
        "x = GENERATIONS['intermediate']",
        "x = {'current': 1}[request.generation]",
        "match request.generation:\n    case _: pass",
        "match generation.scheme:\n    case x: pass",
        "match x:\n    case 'legacy': pass",
        "if generation.name.startswith('leg'): pass",
        "from corpid.rules.oauth.generations import LEGACY",
        "x = generations.FAPI2",
        "x = LEGACY",
    ],
)
def test_a_branch_on_a_generation_is_seen_however_it_is_written(snippet: str) -> None:
    """Otherwise the next test would prove nothing."""
    tree = ast.parse(snippet)
    assert [*naming(tree), *branching(tree)]


@pytest.mark.parametrize(
    "snippet",
    [
        "if policy.query is None: pass",
        "if policy.pushed is not None: pass",
        "if generation.pushed: pass",
        "if generation.name in client.generations: pass",
        "if (client.client_id, generation.name) in counted: pass",
        "found = [each for each in (policy.pushed, policy.query) if each is not None]",
        "if each.code_prefix == code[:1]: pass",
        "if parts.scheme != 'https': pass",
        "if 'code' in query: pass",
        "def f():\n    'legacy'",
        "class A:\n    __slots__ = ('current',)",
    ],
)
def test_data_and_other_things_of_that_name_are_no_branch(snippet: str) -> None:
    tree = ast.parse(snippet)
    assert not [*naming(tree), *branching(tree)]


def test_only_the_generations_module_tells_generations_apart() -> None:
    """Spec "Generations": data, never a branch."""
    named = [
        module.at(node)
        for module in modules()
        if module.path not in NAMES_GENERATIONS and module.layer not in NAMES_GENERATIONS
        for node in naming(module.tree)
    ]
    branched = [
        module.at(node)
        for module in modules()
        if module.path != "rules/oauth/generations.py"
        for node in branching(module.tree)
    ]
    assert not named + branched, listed(named + branched)


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
        if module.layer == "web" and module.path not in READS_HOST
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
    for module in (module for module in modules() if module.layer == "web"):
        parts = {
            id(node.value)
            for node in nodes(module.tree)
            if isinstance(node, ast.Attribute) and node.attr in {"path", "query"}
        }
        found += [
            module.at(node)
            for node in nodes(module.tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in {"request", "connection", "conn"}
            and (node.attr in BUILDS_FROM_HOST or (node.attr == "url" and id(node) not in parts))
        ]
    assert not found, listed(found)


def test_no_other_server_reads_requests() -> None:
    """D32, D47: uvicorn trusts X-Forwarded-* from loopback unless told otherwise."""
    found = [module.path for module in modules() if "import uvicorn" in module.text or "from uvicorn" in module.text]
    assert not found, listed(found)


def is_printing(call: ast.Call) -> bool:
    """`print(…)`, `x.print(…)`, `typer.echo(…)`, `sys.stdout.write(…)`, `os.write(1, …)`."""
    if not isinstance(call.func, ast.Attribute):
        return isinstance(call.func, ast.Name) and call.func.id in PRINTING
    first = call.args[0] if call.args else None
    to_descriptor = isinstance(first, ast.Constant) and first.value in {1, 2}
    to_stream = isinstance(call.func.value, ast.Attribute) and call.func.value.attr in STREAMS
    return call.func.attr in PRINTING or (call.func.attr in {"write", "writelines"} and (to_descriptor or to_stream))


def prints(tree: ast.AST) -> Iterator[ast.expr | ast.stmt | ast.alias]:
    """Every way to a terminal, and every import of rich, which is one."""
    for node in nodes(tree):
        if isinstance(node, ast.Call) and is_printing(node):
            yield node
        elif isinstance(node, ast.ImportFrom | ast.Import):
            named = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            if any(name.split(".")[0] == "rich" for name in named):
                yield node


@pytest.mark.parametrize(
    "snippet",
    [
        "print('x')",
        "console.print('x')",
        "typer.echo('x')",
        "sys.stdout.write('x')",
        "sys.stderr.writelines(x)",
        "os.write(2, b'x')",
        "traceback.print_exc()",
        "import rich",
        "from rich.console import Console",
    ],
)
def test_printing_is_seen_however_it_is_written(snippet: str) -> None:
    """Otherwise the next test would prove nothing."""
    assert list(prints(ast.parse(snippet)))


def test_commands_print_through_one_module_only() -> None:
    """docs/directory.md: what commands print is escaped; `corpid.cli.output` does it."""
    found = [module.at(node) for module in modules() if module.path not in MAY_PRINT for node in prints(module.tree)]
    assert not found, listed(found)
