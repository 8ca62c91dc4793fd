"""docs/generations.md is what the records say (Spec "Generations")."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from corpid.rules.oauth.generations import CURRENT, GENERATIONS, Generation
from scripts.reference import generations

PAGE = Path(__file__).parents[4] / "docs" / "generations.md"


def test_the_page_is_up_to_date() -> None:
    """Spec "Generations"."""
    assert PAGE.read_text(encoding="utf-8") == generations.page(), "run `make tables`"


def test_every_field_of_a_record_is_on_the_page() -> None:
    """A field that is left out would let the page say that two generations are alike."""
    shown = {*generations.MEANINGS, "name", "metadata"}
    assert shown == set(Generation.__struct_fields__)


def test_a_difference_shows_what_was_and_what_becomes() -> None:
    after = replace(CURRENT, name="next", assertion_seconds=30, metadata={**CURRENT.metadata, "x": [1]})
    assert list(generations._changes(CURRENT, after)) == [
        ("longest lifetime of a client assertion, in seconds", "120", "30"),
        ("`x`", "none", "1"),
    ]


def test_no_two_generations_share_a_code_prefix_or_are_alike() -> None:
    """Spec "The generation of a token request": the first character names the generation."""
    assert len({generation.code_prefix for generation in GENERATIONS.values()}) == len(GENERATIONS)
    assert {generation.code_prefix[1:] for generation in GENERATIONS.values()} == {""}
