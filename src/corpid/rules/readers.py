"""Nodes of a document, and readers of their values.

A reader takes a node and returns the value as it is stored, or raises InvalidValue.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection
from datetime import date
from difflib import get_close_matches
from typing import Final, TypeAlias

import msgspec

from corpid.rules.characters import is_invisible, is_needed, name_character, typed_number, with_ascii_digits
from corpid.texts import Phrase, phrase


class Scalar(msgspec.Struct, frozen=True):
    """A text, as it was written; `plain` when without quotes."""

    line: int
    text: str
    plain: bool


class Items(msgspec.Struct, frozen=True):
    line: int
    nodes: tuple[Node, ...]


class Pairs(msgspec.Struct, frozen=True):
    """A mapping, in the order of the file; keys are unique."""

    line: int
    entries: tuple[tuple[Scalar, Node], ...]


Node: TypeAlias = Scalar | Items | Pairs


QUOTED_CHARACTERS: Final = 80
"""a problem repeats so much of a value, so that its line stays one to read"""


def quote_value(value: object) -> str:
    """A value of the file for a message: 80 characters, escaped.

    The first 80. Source: docs/directory.md
    """
    return repr(cut_text(value) if isinstance(value, str) else value)


def cut_text(text: str) -> str:
    """The first 80 characters of a text, with … if cut.

    Source: docs/directory.md
    """
    return text if len(text) <= QUOTED_CHARACTERS else f"{text[:QUOTED_CHARACTERS]}…"


Reader: TypeAlias = "Callable[[Node], object]"


class InvisibleCharacter(ValueError):
    """A text has an invisible character that no letter needs."""

    def __init__(self, character: str, where: str) -> None:
        self.character = name_character(character)
        super().__init__(f"the invisible character {self.character} is not allowed in {where}")

    @property
    def remedy(self) -> Phrase:
        """The instruction for the person who typed it (D74)."""
        return phrase("Remove the invisible character {character}.", character=self.character)


def display_name(text: str, *, joiners: bool = True) -> str:
    """A name for people to read, normalised.

    In NFC, its white space trimmed and each run of it made one space. With `joiners`, U+200C and U+200D may stand where
    letters need them. Raises ValueError for an empty name, and InvisibleCharacter for one with control, bidirectional,
    zero-width or unassigned characters. D51, D74.
    """
    composed = unicodedata.normalize("NFC", text)
    for place, character in enumerate(composed):
        if is_invisible(character) and not (joiners and is_needed(composed, place)):
            raise InvisibleCharacter(character, "a name")
    name = " ".join(composed.split())
    if not name:
        raise ValueError("a name cannot be empty")
    return name


class InvalidDate(ValueError):
    """A text does not have the form of a date."""


class InvalidValue(Exception):
    """A value does not have the form its key requires."""

    def __init__(self, line: int, reason: str, remedy: Phrase | None = None) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason
        self.remedy = remedy
        """what the person who typed it should do, if it is something else than to mend the value"""


_COMPARED: Final = 5000
"""names that a word is compared with; among more of them it would take too long"""


def suggestion(word: str, known: Collection[str]) -> str:
    """`; did you mean …?`, or nothing without a close word.

    Source: docs/directory.md
    """
    if len(word) > QUOTED_CHARACTERS or len(known) > _COMPARED:
        return ""
    close = get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {quote_value(close[0])}?" if close else ""


def unknown_field(name: str, known: Collection[str], noun: str = "this object") -> str:
    """The refusal of a field that a kind of record lacks.

    Source: D59, docs/directory.md
    """
    return f"{quote_value(name)} is not a field of {noun}{suggestion(name, known)}"


def text_of(node: Node) -> str:
    """The text of a scalar.

    A key without a value is refused, since it could mean two things. Source: docs/directory.md
    """
    if not isinstance(node, Scalar):
        raise InvalidValue(node.line, "a single value is expected here, not a list or a mapping")
    if node.plain and not node.text:
        raise InvalidValue(node.line, 'there is no value: omit the key to change nothing, or write "" for empty')
    return node.text


class TextReader(msgspec.Struct, frozen=True):
    """A reader of texts."""

    check: Callable[[str], str]
    """the stored form of a text; raises ValueError"""
    most: int = 0
    """characters; 0: as many as the check allows"""
    words: tuple[str, ...] = ()
    """the closed list of them, if there is one"""

    def __call__(self, node: Node) -> str:
        try:
            return self.check(text_of(node))
        except ValueError as error:
            raise InvalidValue(node.line, str(error), getattr(error, "remedy", None)) from None


def name(limit: int) -> TextReader:
    """A name for people, of at most `limit` characters (D51)."""
    return TextReader(lambda text: limit_text(display_name(text), limit), limit)


def line_of_text(limit: int, *, joiners: bool = True) -> TextReader:
    """A reader of printable texts of at most `limit` characters.

    They may be empty. `joiners` as in `display_name`. Source: D51, D74
    """
    return TextReader(lambda text: limit_text(display_name(text, joiners=joiners), limit) if text else "", limit)


def detail(limit: int) -> TextReader:
    """As `line_of_text`, but blanks alone are no text.

    A person's other systems may send them. Source: D51
    """
    return TextReader(lambda text: limit_text(display_name(text), limit) if text.strip() else "", limit)


def registered_number(limit: int) -> TextReader:
    """A number that a registry gave, of at most `limit` characters.

    Full-width letters and digits of any script become ASCII. Source: D75
    """

    def check(text: str) -> str:
        plain = with_ascii_digits(unicodedata.normalize("NFKC", text))
        return limit_text(display_name(unrounded(plain)), limit) if plain else ""

    return TextReader(check, limit)


_ROUNDED: Final = re.compile(r"[0-9]([.,][0-9]+)?[Ee][+-][0-9]+")


def unrounded(text: str) -> str:
    """The text, unless a spreadsheet has rounded its number.

    Raises ValueError. Source: D75
    """
    if _ROUNDED.fullmatch(text.strip()):
        raise ValueError(f"{quote_value(text)} is a number that a spreadsheet has rounded: format its column as text")
    return text


class _TooLong(ValueError):
    def __init__(self, text: str, limit: int) -> None:
        super().__init__(f"{len(text)} characters are too many: at most {limit}")
        self.remedy = phrase("Use at most {count} characters.", count=limit)


def limit_text(text: str, limit: int) -> str:
    """The text, if it has at most `limit` characters.

    Raises ValueError. Source: R-14
    """
    if len(text) > limit:
        raise _TooLong(text, limit)
    return text


def identifier(limit: int, allowed: str = r"[A-Za-z0-9._-]", described: str = "letters, digits, . _ -") -> TextReader:
    """An identifier of ASCII characters, 1 to `limit` of them (R-14.2)."""
    pattern = re.compile(allowed + "+")

    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"{quote_value(text)} is not an identifier: use {described}")
        return limit_text(text, limit)

    return TextReader(check, limit)


def one_of(*values: str, empty: bool = False) -> TextReader:
    """One of a closed list of words.

    With `empty` also none of them (R-20).
    """

    def check(text: str) -> str:
        if text in values or (empty and not text):
            return text
        raise ValueError(f"{quote_value(text)} is not one of {', '.join(values)}{suggestion(text, values)}")

    return TextReader(check, words=values)


def yes_or_no(node: Node) -> bool:
    """`true` or `false`, nothing else (R-20)."""
    text = text_of(node)
    if text not in {"true", "false"}:
        raise InvalidValue(node.line, f"write true or false, not {quote_value(text)}")
    return text == "true"


def whole_number(node: Node) -> int:
    """A small number of digits (D10, D75)."""
    text = typed_number(text_of(node))
    if not re.fullmatch(r"[0-9]{1,6}", text):
        raise InvalidValue(node.line, f"{quote_value(text)} is not a whole number")
    return int(text)


_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def real_day(text: str) -> str:
    """The date of a text. Raises ValueError. D23, D75"""
    typed = typed_number(text)
    if not _DAY.fullmatch(typed):
        raise InvalidDate(f"{quote_value(text)} is not a date: write YYYY-MM-DD, and 9999-12-31 for no end")
    try:
        return date.fromisoformat(typed).isoformat()
    except ValueError:
        raise ValueError(f"the date {typed} does not exist") from None


day: Final = TextReader(real_day)
"""A date that exists, as YYYY-MM-DD (D23)"""


class ListReader(msgspec.Struct, frozen=True):
    """A reader of lists of different values (R-20)."""

    item: Reader
    """of each value"""
    least: int = 0
    """how many values there are at least"""

    def __call__(self, node: Node) -> tuple[object, ...]:
        if not isinstance(node, Items):
            raise InvalidValue(node.line, "a list is expected here: [first, second]")
        values: dict[object, None] = {}
        for each in node.nodes:
            value = self.item(each)
            if value in values:
                raise InvalidValue(each.line, f"{quote_value(value)} occurs twice in the list")
            values[value] = None
        if len(values) < self.least:
            raise InvalidValue(node.line, "the list needs at least one value")
        return tuple(values)


def key_set(node: Node) -> str:
    """A JSON Web Key Set as JSON text.

    Written inline as YAML, pasted as JSON, or as one text. Source: D27
    """
    if isinstance(node, Scalar):
        return text_of(node)
    return msgspec.json.encode(_json(node)).decode()


def _json(node: Node) -> object:
    if isinstance(node, Items):
        return [_json(item) for item in node.nodes]
    if isinstance(node, Pairs):
        return {key.text: _json(value) for key, value in node.entries}
    return {"true": True, "false": False, "null": None}.get(node.text, node.text) if node.plain else node.text


CLIENT_ID: Final = identifier(64)
URI: Final = identifier(2048, r"[!-~]", "printable ASCII")
