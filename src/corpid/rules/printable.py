"""Printable text, without control characters or misleading ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

IGNORABLE: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"
    + "".join(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
)
"""letters and marks that draw nothing, which their category does not say (Default_Ignorable_Code_Point)"""


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def printable(text: str, *, escape: Callable[[str], str] = _escape) -> str:
    r"""The text with invisible and misleading characters escaped.

    `\x1b` and `\u202e`, for example. Those are control characters (C0 with line ends, C1), bidirectional controls,
    zero-width and other invisible ones, unassigned ones and lone surrogates; spaces other than U+0020, too. `escape`
    writes one of them. Source: docs/directory.md, Unicode TR 36 §3.6
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(each if each.isprintable() and each not in IGNORABLE else escape(each) for each in text)


def printable_lines(text: str) -> str:
    """`printable`, for text that may have several lines. Source: docs/directory.md"""
    return "\n".join(map(printable, text.split("\n")))
