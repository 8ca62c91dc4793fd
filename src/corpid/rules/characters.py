"""Printable text for people, and codes as they type them.

A keyboard may have digits of its own script; a copied code may hold separators and characters that nobody sees (D75).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Final

IGNORABLE: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"
    + "".join(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
)
"""letters and marks that draw nothing, which their category does not say (Default_Ignorable_Code_Point)"""

JOINERS: Final = "\u200c\u200d"
"""zero-width non-joiner and joiner, which letters of some scripts need between them"""
_AROUND: Final = 64
"""characters before and after a joiner that are looked at"""


_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MINUS: Final = "\u2212"


def is_needed(text: str, place: int) -> bool:
    """Return whether the letters around a joiner need it.

    Source: RFC 5892 A.1, A.2, D74
    """
    if text[place] not in JOINERS:
        return False
    from idna.core import valid_contextj  # noqa: PLC0415 - most texts have no joiner

    start = max(0, place - _AROUND)
    try:
        return valid_contextj(text[start : place + _AROUND], place - start)
    except ValueError:
        return False


def is_invisible(character: str) -> bool:
    """Return whether a character draws nothing, and is no space.

    Source: D51, D74, Unicode 5.21 (Default_Ignorable_Code_Point)
    """
    return character in IGNORABLE or unicodedata.category(character) in _INVISIBLE


def name_character(character: str) -> str:
    """A character for people: `U+200B (zero width space)`. Source: D74"""
    name = unicodedata.name(character, "tab" if character == "\t" else "").lower()
    return f"U+{ord(character):04X} ({name})" if name else f"U+{ord(character):04X}"


def escape_character(character: str) -> str:
    r"""An escape sequence, such as `\x1b`."""
    return character.encode("unicode_escape").decode("ascii")


def printable(text: str, *, escape: Callable[[str], str] = escape_character) -> str:
    r"""The text with invisible and misleading characters escaped.

    `\x1b` and `\u202e`, for example. Those are control characters (C0 with line ends, C1), bidirectional controls,
    zero-width and other invisible ones, unassigned ones and lone surrogates; spaces other than U+0020, too. Joiners
    that letters need stay. `escape` writes one of them. Source: docs/directory.md, D74, Unicode TR 36 §3.6
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        each if (each.isprintable() and each not in IGNORABLE) or is_needed(text, place) else escape(each)
        for place, each in enumerate(text)
    )


def printable_lines(text: str) -> str:
    """`printable`, for text that may have several lines. Source: docs/directory.md"""
    return "\n".join(map(printable, text.split("\n")))


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
    return "".join(
        "-" if each == _MINUS or unicodedata.category(each) == "Pd" else each
        for each in with_ascii_digits(text)
        if not _is_ignored(each)
    )


def typed_code(text: str) -> str:
    """A code with ASCII digits.

    Without spaces, hyphens and invisible characters. Source: D75
    """
    return text if text.isascii() and text.isalnum() else typed_number(text).replace("-", "")


def _is_ignored(character: str) -> bool:
    return character.isspace() or unicodedata.category(character) == "Cf" or character in IGNORABLE
