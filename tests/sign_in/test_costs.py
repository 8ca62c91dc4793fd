"""What each step costs, as docs/costs.md says it: counts, never times."""

from __future__ import annotations

import sys
from functools import cache

import pytest

from tests.sign_in import costs
from tests.sign_in.costs import Cost

MOST = Cost(transactions=2, statements=25, calls=390)
_TENTH = 1.1
_COUNTED_ON = (3, 11)
"""calls differ from version to version: later ones need none for a comprehension"""
_BEGIN, _END = "<!-- counted by tests/sign_in/costs.py -->\n", "<!-- end -->\n"


@cache
def measured() -> dict[str, Cost]:
    return costs.measured()


def written() -> dict[str, Cost]:
    """The rows of the table in the document."""
    table = costs.PAGE.read_text(encoding="utf-8").partition(_BEGIN)[2].partition(_END)[0]
    found = {}
    for line in table.splitlines()[2:]:
        heading, request, *counts = (cell.strip().strip("`") for cell in line.strip("|").split("|"))
        transactions, statements, calls = map(int, counts)
        found[f"{heading}: {request}"] = Cost(transactions=transactions, statements=statements, calls=calls)
    return found


def test_the_table_of_what_each_step_costs_is_true() -> None:
    """A change that costs more says so: `python -m tests.sign_in.costs` prints the rows."""
    found, said = measured(), written()
    assert list(found) == list(said)
    for name, cost in found.items():
        told = said[name]
        assert (name, cost.transactions, cost.statements) == (name, told.transactions, told.statements)
        if sys.version_info[:2] == _COUNTED_ON:
            assert told.calls / _TENTH <= cost.calls <= told.calls * _TENTH, (name, cost.calls, told.calls)


@pytest.mark.parametrize("browser", ["known", "new"])
@pytest.mark.parametrize("factor", ["app", "passkey"])
def test_a_last_factor_that_ends_the_sign_in_reads_once_decides_and_writes_once(factor: str, browser: str) -> None:
    """One unit counts the attempt and spends the factor, one writes everything else."""
    action = "code" if factor == "app" else "passkey"
    cost = measured()[f"{browser} browser, {factor}: POST /sign-in/…/{action}"]
    assert cost.transactions <= MOST.transactions
    assert cost.statements <= MOST.statements
    assert cost.calls <= MOST.calls * _TENTH


@pytest.mark.parametrize("step", ["entity", "consent"])
def test_a_choice_is_at_most_one_transaction_also_if_it_ends_the_sign_in(step: str) -> None:
    """D15: the step is claimed, and all that lasts of what follows from it is written together."""
    cost = measured()[f"two entities and consent: POST /sign-in/…/{step}"]
    assert cost.transactions <= 1
    assert cost.statements <= MOST.statements
