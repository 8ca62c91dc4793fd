"""Rules for a new password (D44, D75)."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from corpid.texts import Phrase

SHORTEST: Final = 12
LONGEST: Final = 128
LONGEST_TYPED: Final = 4 * LONGEST
"""code points before NFC, which combines at most four of them into one; the bound keeps normalising cheap"""
BEYOND_THE_NAME: Final = 6
"""characters that a password must have in addition to a shorter user name"""
_SHORTEST_NAME: Final = 4
"""characters of a user name, or letters of a name, that no password contains"""
_BETWEEN_NAMES: Final = re.compile(r"[\s\-.,'\u2019()/]+")
_NOT_ASCII_SPACE: Final = re.compile(r"[^\S\x00-\x7f\x85\u2028\u2029]")
"""every space (Zs) but U+0020"""


class PasswordRefused(Exception):
    """A password that may not be chosen.

    The sentence says what to change.
    """

    def __init__(self, sentence: Phrase) -> None:
        super().__init__(sentence)
        self.sentence = sentence


def typed_forms(password: str) -> tuple[str, ...]:
    """The forms of a typed password to compare, each once.

    Non-ASCII spaces become spaces, then the text becomes NFC: some keyboards type a no-break space. The second form, if
    there is one, keeps those spaces, as passwords were hashed before. Source: RFC 8265 §4.2.2, D75
    """
    return tuple(dict.fromkeys((normalise_password(password), unicodedata.normalize("NFC", password))))


def normalise_password(password: str) -> str:
    """Return the form of a password that is hashed.

    The same password gives the same form on every keyboard. Source: RFC 8265 §4.2.2, D44, D75
    """
    return unicodedata.normalize("NFC", _NOT_ASCII_SPACE.sub(" ", password))


def chosen_password(password: str, *, user_name: str, name: str, blocklist: AbstractSet[str]) -> str:
    """Return the normalised form of an allowed password.

    It has 12 to 128 characters, is not easily guessed and contains neither the user name nor a part of the person's
    `name`. `blocklist` holds casefolded passwords. There are no rules of composition. Raises PasswordRefused. Source:
    D44, D75 (NIST SP 800-63B §5.1.1.2)
    """
    if len(password) > LONGEST_TYPED:
        raise PasswordRefused(phrase("Choose a password of at most {characters} characters.", characters=LONGEST))
    chosen = normalise_password(password)
    if len(chosen) < SHORTEST:
        raise PasswordRefused(
            phrase(
                "Choose a password of at least {characters} characters. Several words make a good one.",
                characters=SHORTEST,
            )
        )
    if len(chosen) > LONGEST:
        raise PasswordRefused(phrase("Choose a password of at most {characters} characters.", characters=LONGEST))
    folded, own = chosen.casefold(), normalise_password(user_name).casefold()
    if folded in blocklist:
        raise PasswordRefused(phrase("Choose another password: this is one that attackers try first."))
    if own and len(folded.replace(own, "")) < BEYOND_THE_NAME:
        raise PasswordRefused(phrase("Choose another password: this one is too close to your user name."))
    if len(own) >= _SHORTEST_NAME and own in folded:
        raise PasswordRefused(phrase("Choose another password: this one contains your user name."))
    if any(each in folded for each in _names(name)):
        raise PasswordRefused(phrase("Choose another password: this one contains your name."))
    return chosen


def _names(name: str) -> list[str]:
    """The parts of a name that no password contains."""
    parts = _BETWEEN_NAMES.split(normalise_password(name).casefold())
    return [each for each in parts if sum(map(str.isalpha, each)) >= _SHORTEST_NAME]
