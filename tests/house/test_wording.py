"""The words of documents and catalogues, and docs/wording.md in step with them."""

from __future__ import annotations

import re

import pytest
from babel.messages.pofile import read_po

from scripts.texts import PACKAGES, locales
from tests.house.source import documents, listed

COLUMNS = ("en", "zh-Hans", "ms", "ta")
_NAMES = re.compile(r"%\(provider_name\)s|\{(?:name|provider)\}")


def texts(language: str) -> str:
    """Everything that a catalogue says, with the provider's name filled in."""
    name = "ms" if language == "en" else language
    messages = []
    for package in PACKAGES:
        with (locales(package) / f"{name}.po").open("rb") as file:
            messages += [message for message in read_po(file) if message.id]
    said = [message.id if language == "en" else message.string for message in messages]
    forms = [form for each in said for form in ([each] if isinstance(each, str) else each or ())]
    return _NAMES.sub("CorpID", "\n".join(forms)).lower()


@pytest.mark.parametrize("language", COLUMNS)
def test_the_terms_of_the_glossary_are_those_of_the_catalogue(language: str) -> None:
    """docs/wording.md: one term for one thing."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in documents()["docs/wording.md"].partition("## States")[0].splitlines()
        if line.startswith("| ") and not line.startswith("| English")
    ]
    said = texts(language)
    missing = [row[COLUMNS.index(language)] for row in rows if row[COLUMNS.index(language)].lower() not in said]
    assert rows
    assert not missing


@pytest.mark.parametrize(
    "term", ["person who manages", "your administrator", "unwanted e-mail", "anew", "log in", "second factor"]
)
def test_no_text_uses_a_term_that_the_glossary_replaces(term: str) -> None:
    assert term not in texts("en")


@pytest.mark.parametrize("term", ["taip", "bertindak bagi pihak", "penyemak imbas", "emel "])
def test_malay_uses_no_term_beside_those_of_the_glossary(term: str) -> None:
    """docs/wording: *masukkan*, *mewakili*, *pelayar* and *e-mel*."""
    assert term not in texts("ms")


REPLACED = (
    "anew", "as ever", "beside", "besides", "but for", "crowd", "errand", "ladder", "likewise", "log in", "log out", "mend",
    "mended", "stretch", "whoever",
)  # fmt: skip
"""metaphors and dialect that docs/wording.md replaces"""


def test_no_document_uses_a_word_that_is_replaced() -> None:
    """docs/wording.md; code, commands and the release notes are left out."""
    pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(REPLACED)})(?![\w-])", re.IGNORECASE)
    found = [
        (path, f"{number}: {match.group()}")
        for path, text in documents().items()
        if path not in {"CHANGELOG.md", "docs/wording.md"}
        for number, line in enumerate(text.splitlines(), start=1)
        for match in pattern.finditer(re.sub(r"`[^`]*`", "", line))
    ]
    assert not found, listed(found)
