"""Tables whose rows need nothing of their own: one test goes through all rows, and names those that fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

R = TypeVar("R")


def hold_in_each(rows: Mapping[str, R], check: Callable[[R], None]) -> None:
    """Check every row, also after one that fails."""
    assert rows
    failed = []
    for name, row in rows.items():
        try:
            check(row)
        except Exception as error:  # noqa: BLE001 - raised below, with the others
            error.add_note(f"row: {name}")
            failed.append(error)
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {len(rows)} rows", failed)


def each_of(rows: Mapping[str, R]) -> Callable[[Callable[[R], None]], Callable[[], None]]:
    """Make one test of a function that checks one row."""

    def decorated(check: Callable[[R], None]) -> Callable[[], None]:
        def test() -> None:
            hold_in_each(rows, check)

        test.__name__, test.__qualname__, test.__doc__ = check.__name__, check.__qualname__, check.__doc__
        return test

    return decorated
