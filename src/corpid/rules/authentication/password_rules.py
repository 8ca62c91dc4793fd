"""Rules for a new password (D44)."""

from __future__ import annotations

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
"""characters that a password must have in addition to the user name"""


class PasswordRefused(Exception):
    """A password that may not be chosen.

    The sentence says what to change.
    """

    def __init__(self, sentence: Phrase) -> None:
        super().__init__(sentence)
        self.sentence = sentence


def normalised(password: str) -> str:
    """Return the form of a password that is hashed.

    The same password gives the same form (NFC) on every keyboard. Source: D44
    """
    return unicodedata.normalize("NFC", password)


def chosen_password(password: str, *, user_name: str, blocklist: AbstractSet[str]) -> str:
    """Return the normalised form of an allowed password.

    It has 12 to 128 characters and is not easily guessed. `blocklist` holds casefolded passwords. There are no rules of
    composition. Raises PasswordRefused. Source: D44 (NIST SP 800-63B §5.1.1.2)
    """
    if len(password) > LONGEST_TYPED:
        raise PasswordRefused(phrase("Choose a password of at most {characters} characters.", characters=LONGEST))
    chosen = normalised(password)
    if len(chosen) < SHORTEST:
        raise PasswordRefused(
            phrase(
                "Choose a password of at least {characters} characters. Several words make a good one.",
                characters=SHORTEST,
            )
        )
    if len(chosen) > LONGEST:
        raise PasswordRefused(phrase("Choose a password of at most {characters} characters.", characters=LONGEST))
    folded, name = chosen.casefold(), normalised(user_name).casefold()
    if folded in blocklist:
        raise PasswordRefused(phrase("Choose another password: this is one that attackers try first."))
    if name and len(folded.replace(name, "")) < BEYOND_THE_NAME:
        raise PasswordRefused(phrase("Choose another password: this one is too close to your user name."))
    return chosen
