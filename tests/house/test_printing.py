"""Whatever reaches a terminal went through the one function that escapes it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from tests.house.source import listed, modules

if TYPE_CHECKING:
    from collections.abc import Iterator

# The commands' output, and the log, whose lines are escaped ASCII.
MAY_PRINT = {"cli/output.py", "web/telemetry/access_log.py"}
PRINTING = {"print", "echo", "secho", "print_exc", "print_exception"}
STREAMS = {"stdout", "stderr"}


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
    for node in ast.walk(tree):
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
