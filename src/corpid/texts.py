"""Texts for people: English in the code, translated when shown.

A phrase *is* its English text, so that logs, the audit and tests read it as it stands; it remembers what it was
made of, so that a page can say it in the language of its reader (`web.pages.translations`). `make texts` collects the
arguments of `phrase` and `counted`, which therefore have to be literals.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from functools import cache
from types import MappingProxyType
from typing import Final, Self, TypeAlias
from zoneinfo import ZoneInfo

Packed: TypeAlias = "str | int | list[Packed] | dict[str, Packed]"
_CLOSING_ISOLATE: Final = "\u2069"
"""ends a name that would change the direction of its surroundings"""


class Phrase(str):
    """A text for a person.

    `message` is the literal, `values` are those of its braces.

    With `many`, the literal for every number but one, `values["count"]` chooses between them.
    """

    __slots__ = ("many", "message", "values")

    message: str
    many: str
    values: Mapping[str, object]

    def __new__(cls, message: str, many: str, values: Mapping[str, object]) -> Self:
        """The English text, with its parts."""
        wording = many if many and values["count"] != 1 else message
        if values:
            wording = fill_wording(wording, {name: _in_english(value) for name, value in values.items()})
        made = super().__new__(cls, wording)
        made.message = message
        made.many = many
        made.values = MappingProxyType(values)
        return made


def capitalise(text: str) -> str:
    """A text with a capital letter, its other letters as they are."""
    return f"{text[:1].upper()}{text[1:]}"


def has_full_stop(value: object) -> bool:
    """Return True if a text ends with a full stop."""
    return str(value).rstrip(_CLOSING_ISOLATE).endswith(".")


def fill_wording(wording: str, values: Mapping[str, object]) -> str:
    """A wording with its values.

    A name that ends with a full stop ends its sentence, too.
    """
    for name, value in values.items():
        if has_full_stop(value):
            wording = wording.replace(f"{{{name}}}.", f"{{{name}}}")
    return wording.format_map(values)


def _in_english(value: object) -> object:
    if isinstance(value, datetime):
        return f"{value:%d %b %Y, %H:%M} {value.tzname()}"
    if isinstance(value, date):
        return f"{value:%d %b %Y}"
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(value) if isinstance(value, tuple) else value


def phrase(message: str, /, **values: object) -> Phrase:
    """A text for a person, e.g. `phrase("Return to {name}", name=client.name)`.

    A value is a name, rendered as it is, a tuple of names, a whole number, a time, a day, or another phrase.
    """
    return Phrase(message, "", values) if values else _constant(message)


@cache
def _constant(message: str) -> Phrase:
    return Phrase(message, "", {})


def counted(count: int, one: str, many: str, /, **values: object) -> Phrase:
    """A text that depends on a number.

    E.g. `counted(5, "{count} minute left", "{count} minutes left")`.
    """
    return Phrase(one, many, {"count": count, **values})


def pack_text(text: str) -> Packed:
    """A text as strings, numbers, lists and mappings, for `unpack_text`."""
    if not isinstance(text, Phrase):
        return str(text)
    return {
        "message": text.message,
        "many": text.many,
        "values": {name: _packed_value(value) for name, value in text.values.items()},
    }


def _packed_value(value: object) -> Packed:
    if isinstance(value, str):
        return pack_text(value)
    if isinstance(value, tuple):
        return [pack_text(each) for each in value]
    if isinstance(value, datetime):
        return {"time": value.isoformat(), "zone": str(value.tzinfo)}
    if isinstance(value, date):
        return {"day": value.isoformat()}
    if isinstance(value, int):
        return value
    raise TypeError(f"no value of a text: {value!r}")


def unpack_text(stored: object) -> Phrase:
    """The text of `pack_text`. Raises ValueError for anything else."""
    text = _unpacked_value(stored)
    if isinstance(text, Phrase):
        return text
    if isinstance(text, str):
        return Phrase("{text}", "", {"text": text})
    raise ValueError("no text")


def _unpacked_value(stored: object) -> object:
    match stored:
        case str() | int():
            return stored
        case [*each]:
            return tuple(map(_unpacked_value, each))
        case {"message": str(message), "many": str(many), "values": dict(values)}:
            return Phrase(message, many, {name: _unpacked_value(value) for name, value in values.items()})
        case {"time": str(time), "zone": str(zone)}:
            return datetime.fromisoformat(time).astimezone(ZoneInfo(zone))
        case {"day": str(day)}:
            return date.fromisoformat(day)
        case _:
            raise ValueError("no text")


class InvalidInput(Exception):
    """The error for input that is not accepted.

    The sentence is for the person.
    """

    def __init__(self, sentence: Phrase, *, field: str = "") -> None:
        """`field`: the one that it is about, if the form has several."""
        super().__init__(sentence)
        self.sentence = sentence
        self.field = field
