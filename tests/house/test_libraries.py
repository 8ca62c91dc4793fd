"""docs/libraries.md claims only what a run has shown."""

from __future__ import annotations

import json

import pytest

from corpid_dev.relying_party.interfaces import INTERFACES
from scripts.reference import libraries
from tests.house.source import ROOT
from tests.interop.library_matrix.declarations import LIBRARIES, RESULTS


def test_the_page_is_what_the_declarations_and_the_last_run_give() -> None:
    """`make tables` writes it."""
    assert (ROOT / "docs" / "libraries.md").read_text(encoding="utf-8") == libraries.page()


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_declared_generation_was_run_as_it_stands(name: str) -> None:
    """A library whose pin or program changes has to be run again: `make interop`, then `make tables`."""
    library = LIBRARIES[name]
    runs = json.loads(RESULTS.read_text(encoding="utf-8"))[name]
    ran = {generation: {**run, "date": ""} for generation, run in runs.items()}
    assert ran == {generation: {**library.run(), "date": ""} for generation in library.speaks}


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_generation_that_a_library_does_not_speak_has_a_reason(name: str) -> None:
    library = LIBRARIES[name]
    assert {*library.speaks, *library.impossible} == INTERFACES.keys()
    assert not library.impossible.keys() & set(library.speaks)
