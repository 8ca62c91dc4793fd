"""The tables of tests fail where a row does."""

from __future__ import annotations

import pytest

from tests.tables import each_of, hold_in_each


def check(number: int) -> None:
    """What a row must be."""
    assert number % 2 == 0


def test_every_row_that_fails_is_named_also_behind_another() -> None:
    """CONTRIBUTING "Tests"."""
    rows = {"one": 1, "two": 2, "three": 3}
    for test in (each_of(rows)(check), lambda: hold_in_each(rows, check)):
        with pytest.raises(ExceptionGroup, match="2 of 3 rows") as failed:
            test()
        assert [each.__notes__ for each in failed.value.exceptions] == [["row: one"], ["row: three"]]
    each_of({"two": 2})(check)()
    assert (each_of(rows)(check).__name__, each_of(rows)(check).__doc__) == ("check", "What a row must be.")


def test_a_table_without_rows_fails() -> None:
    """Else it would promise nothing."""
    with pytest.raises(AssertionError):
        hold_in_each({}, check)
