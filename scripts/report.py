"""The size of the program: modules, and statements without docstrings, by package, and long modules. `make report` prints it.

It also lists the numbers of the specification that nothing cites.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Final

from scripts.citations import uncited

ROOT: Final = Path(__file__).parents[1]
LONG: Final = 800
"""lines of a module that may hold more than one concept"""


def statements(source: str) -> int:
    """The statements of a module; docstrings and other lone strings are none."""
    return sum(
        isinstance(node, ast.stmt)
        and not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        for node in ast.walk(ast.parse(source))
    )


def sizes(folder: Path) -> dict[str, tuple[int, int]]:
    """Modules and statements of each package directly in a folder; `.` is what lies in the folder itself."""
    modules, counted = Counter[str](), Counter[str]()
    for path in sorted(folder.rglob("*.py")):
        inside = path.relative_to(folder).parts
        if "node_modules" in inside:
            continue
        package = inside[0] if len(inside) > 1 else "."
        modules[package] += 1
        counted[package] += statements(path.read_text(encoding="utf-8"))
    return {package: (modules[package], counted[package]) for package in sorted(modules)}


def long_modules(folder: Path) -> dict[str, int]:
    """Lines of each module in a folder that has more than `LONG`."""
    lengths = {
        path.relative_to(folder).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in sorted(folder.rglob("*.py"))
        if "node_modules" not in path.parts
    }
    return {path: lines for path, lines in lengths.items() if lines > LONG}


def main() -> None:
    """Print a table for the program and one for its tests."""
    for folder in ("src/corpid", "src/corpid_dev", "tests"):
        found = sizes(ROOT / folder)
        print(f"\n{folder:<24}{'modules':>10}{'statements':>12}")
        for package, (modules, counted) in found.items():
            print(f"  {package:<22}{modules:>10}{counted:>12}")
        totals = [sum(column) for column in zip(*found.values(), strict=True)]
        print(f"  {'together':<22}{totals[0]:>10}{totals[1]:>12}")
        for path, lines in long_modules(ROOT / folder).items():
            print(f"  {path} has {lines} lines: is it one concept?")
    print(f"\nnumbers of docs/specification that nothing cites: {', '.join(uncited()) or 'none'}")


if __name__ == "__main__":
    main()
