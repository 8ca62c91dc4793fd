"""How PostgreSQL would execute a statement, whatever its values: what a prepared statement comes to use."""

from __future__ import annotations

import re

_PARAMETER = re.compile(r"\$(\d+)")
_WHOLE = re.compile(r"Seq Scan on (\w+)")


def parameters(statement: str) -> int:
    """How many parameters a statement has."""
    return max(map(int, _PARAMETER.findall(statement)), default=0)


def explaining(statement: str) -> str:
    """SQL that answers with the steps of the plan, for a connection of its own."""
    count = parameters(statement)
    values = f"({', '.join(['NULL'] * count)})" if count else ""
    return (
        f"SET plan_cache_mode = force_generic_plan; PREPARE asked AS {statement}; "
        f"EXPLAIN (VERBOSE false, COSTS false) EXECUTE asked{values}"
    )


def read_whole(steps: str) -> set[str]:
    """The tables that a plan reads from beginning to end."""
    return set(_WHOLE.findall(steps))
