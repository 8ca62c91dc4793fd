"""Phrases: one full stop after a name that has its own."""

from __future__ import annotations

import pytest

from corpid.texts import counted, phrase
from corpid.web.pages.translations import LANGUAGES, PSEUDO, Language, translator

COMPANY = "Acme Pte. Ltd."


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (phrase("Ask {name}.", name=COMPANY), "Ask Acme Pte. Ltd."),
        (phrase("Ask {name}.\n\nThank you.", name=COMPANY), "Ask Acme Pte. Ltd.\n\nThank you."),
        (phrase("Ask {name}. Or {name}?", name=COMPANY), "Ask Acme Pte. Ltd. Or Acme Pte. Ltd.?"),
        (phrase("Ask {name}.", name="Acme"), "Ask Acme."),
        (phrase("Ask {names}.", names=("Acme", COMPANY)), "Ask Acme, Acme Pte. Ltd."),
        (counted(2, "{count} of {name}.", "{count} of {name}.", name=COMPANY), "2 of Acme Pte. Ltd."),
    ],
)
def test_a_sentence_that_ends_with_a_name_ends_with_one_full_stop(said: str, expected: str) -> None:
    assert str(said) == expected


@pytest.mark.parametrize("language", [*LANGUAGES, PSEUDO], ids=lambda each: each.tag)
def test_no_translation_ends_with_two_full_stops(language: Language) -> None:
    """Also where the name is isolated from a text of another direction."""
    said = phrase("The invitation from {entity} was accepted with your account.", entity=COMPANY)
    ends = phrase("Go back to {name} and start again.", name=COMPANY)
    for each in (said, ends, phrase("Return to {name}.", name=COMPANY)):
        assert ".." not in translator(language).say(each).replace("\u2069", "")
