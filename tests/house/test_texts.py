"""The catalogues say everything that the pages say, and nothing else (`make texts`)."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import pytest
from babel.messages.pofile import read_po

from corpid.web.pages.translations import ENGLISH, LANGUAGES
from scripts.texts import PACKAGES, collected, locales, rendered, template
from tests.house.source import listed

if TYPE_CHECKING:
    from pathlib import Path

    from babel.messages.catalog import Catalog, Message

TRANSLATED = [language.tag for language in LANGUAGES if language is not ENGLISH]
COMPLETE = [language.tag for language in LANGUAGES if language is not ENGLISH and not language.partial]
PLACEHOLDER = re.compile(r"%\(\w+\)s|%%|\{\w*\}")
TAG = re.compile(r"<[^>]*>")


@cache
def everything(package: str) -> Catalog:
    return collected(package)


def catalogue(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file)


def identity(message: Message) -> str | tuple[str, ...]:
    return message.id if isinstance(message.id, str) else tuple(message.id)


def ids(catalog: Catalog) -> set[str | tuple[str, ...]]:
    return {identity(message) for message in catalog if message.id}


def pairs(catalog: Catalog) -> list[tuple[str, str]]:
    """Original and translation, each form of a plural with the last one of English."""
    return [
        (message.id if isinstance(message.id, str) else message.id[-1], string)
        for message in catalog
        if message.id
        for string in ([message.string] if isinstance(message.string, str) else message.string or [""])
    ]


every_language = pytest.mark.parametrize("tag", TRANSLATED)
every_package = pytest.mark.parametrize("package", PACKAGES)


@every_package
def test_there_is_a_catalogue_for_each_language_and_no_other(package: str) -> None:
    assert sorted(path.stem for path in locales(package).glob("*.po")) == sorted(TRANSLATED)


@every_package
def test_the_template_holds_what_is_said_now(package: str) -> None:
    """`make texts` collects it."""
    assert template(package).read_bytes() == rendered(everything(package)), "run `make texts`"


@every_package
@pytest.mark.parametrize("tag", COMPLETE)
def test_every_text_is_translated_and_no_translation_is_left_over(tag: str, package: str) -> None:
    found = catalogue(locales(package) / f"{tag}.po")
    assert ids(found) == ids(everything(package)), "run `make texts`"
    bare = [original for original, translation in pairs(found) if not translation]
    fuzzy = [message.id for message in found if message.id and message.fuzzy]
    assert not bare + fuzzy, f"translate in src/{package}/locales/{tag}.po: {listed([*bare, *fuzzy])}"
    assert not found.obsolete


@every_package
@every_language
def test_a_translation_has_the_placeholders_and_tags_of_its_original(tag: str, package: str) -> None:
    different = [
        translation
        for original, translation in pairs(catalogue(locales(package) / f"{tag}.po"))
        for pattern in (PLACEHOLDER, TAG)
        if translation  # a partial language has none
        and sorted(pattern.findall(original)) != sorted(pattern.findall(translation))
    ]
    assert not different, listed(different)


@every_package
@pytest.mark.parametrize("tag", [*TRANSLATED, "en"])
def test_no_text_could_end_an_attribute_or_begin_an_entity(tag: str, package: str) -> None:
    """A text of a template stands on the page as it is, also in an attribute; quotation marks are curly ones."""
    found = (
        pairs(catalogue(locales(package) / f"{tag}.po")) if tag != "en" else [("", text) for text in english(package)]
    )
    dangerous = [text for _, text in found if set('"&<>').intersection(TAG.sub("", text))]
    assert not dangerous, listed(dangerous)


def english(package: str) -> list[str]:
    return [text for each in ids(everything(package)) for text in ((each,) if isinstance(each, str) else each)]


@every_package
@every_language
def test_a_translation_begins_and_ends_as_its_original_does(tag: str, package: str) -> None:
    """White space around a text belongs to whoever puts it somewhere."""
    different = [
        translation
        for original, translation in pairs(catalogue(locales(package) / f"{tag}.po"))
        if translation
        and (original[:1].isspace(), original[-1:].isspace()) != (translation[:1].isspace(), translation[-1:].isspace())
    ]
    assert not different, listed(different)
