"""What `make test` takes of a test that runs several times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable


def first_or_full(values: Iterable[Any], *, first: Any = None, together: bool = False) -> list[Any]:
    """Values of one parameter, or of several that go `together`.

    `make test` takes the first, or the one that is named; `make test-full` takes the others.
    """
    every = list(values)
    taken = every[0] if first is None else first
    return [
        each if each == taken else pytest.param(*(each if together else (each,)), marks=pytest.mark.full)
        for each in every
    ]
