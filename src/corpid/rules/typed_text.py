"""Codes, numbers and dates as people type them (D75).

A keyboard may have digits of its own script; a copied code may hold separators and characters that nobody sees.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from corpid.rules.printable import IGNORABLE

_MINUS: Final = "\u2212"


def with_ascii_digits(text: str) -> str:
    """A text whose decimal digits of any script are 0 to 9.

    Source: Unicode 4.6 (Nd), D75
    """
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(each)) if unicodedata.category(each) == "Nd" else each for each in text)


def typed_number(text: str) -> str:
    """A number or date with ASCII digits and hyphens.

    Without spaces and invisible characters. Source: D75
    """
    if text.isascii():
        return "".join(text.split())
    return "".join("-" if _is_hyphen(each) else each for each in with_ascii_digits(text) if not _is_ignored(each))


def typed_code(text: str) -> str:
    """A code with ASCII digits.

    Without spaces, hyphens and invisible characters. Source: D75
    """
    return text if text.isascii() and text.isalnum() else typed_number(text).replace("-", "")


def _is_hyphen(character: str) -> bool:
    return character == _MINUS or unicodedata.category(character) == "Pd"


def _is_ignored(character: str) -> bool:
    return character.isspace() or unicodedata.category(character) == "Cf" or character in IGNORABLE
