"""Tests that run once in each generation of the interface, where they share its rule.

A module or a test names them, `pytestmark = pytest.mark.generations("legacy", "current")`; without the mark it is
the current one. `make test` takes the current one, or the first of them where they do not share its rule; the others
are in `make test-full`. With `differ=True`, for a test that expects other things of each, or whose rows are not those
of every generation, `make test` takes all. The names below are for the conftest of a folder to import.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

__all__ = ["pytest_configure", "pytest_generate_tests", "speaking"]


CURRENT: Final = "current"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "generations(*names, differ=False): runs once in each of these generations of the interface; "
        "`make test` takes one of them, or all that differ",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    named = metafunc.definition.get_closest_marker("generations")
    if named is not None and "speaking" in metafunc.fixturenames:
        metafunc.parametrize("speaking", _tiered(named.args, **named.kwargs), indirect=True)


def _tiered(names: tuple[str, ...], *, differ: bool = False) -> list[Any]:
    often = names if differ else (CURRENT if CURRENT in names else names[0],)
    return [each if each in often else pytest.param(each, marks=pytest.mark.full) for each in names]


@pytest.fixture(scope="module")
def speaking(request: pytest.FixtureRequest) -> str:
    """The generation that the test's provider serves and its relying parties speak."""
    return str(getattr(request, "param", CURRENT))
