"""Printable text, without control characters or misleading ones."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

IGNORABLE: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"
    + "".join(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
)
"""letters and marks that draw nothing, which their category does not say (Default_Ignorable_Code_Point)"""

JOINERS: Final = "\u200c\u200d"
"""zero-width non-joiner and joiner, which letters of some scripts need between them"""
_AROUND: Final = 64
"""characters before and after a joiner that are looked at"""


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


_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def name_character(character: str) -> str:
    """A character for people: `U+200B (zero width space)`. Source: D74"""
    name = unicodedata.name(character, "tab" if character == "\t" else "").lower()
    return f"U+{ord(character):04X} ({name})" if name else f"U+{ord(character):04X}"


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def printable(text: str, *, escape: Callable[[str], str] = _escape) -> str:
    r"""The text with invisible and misleading characters escaped.

    `\x1b` and `\u202e`, for example. Those are control characters (C0 with line ends, C1), bidirectional controls,
    zero-width and other invisible ones, unassigned ones and lone surrogates; spaces other than U+0020, too. Joiners that
    letters need stay. `escape` writes one of them. Source: docs/directory.md, D74, Unicode TR 36 §3.6
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
