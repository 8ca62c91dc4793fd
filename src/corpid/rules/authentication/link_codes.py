"""Codes of links, carried in the fragment or typed.

A fragment is never part of a request (RFC 9110 §4.2.5), so no log of a proxy or server holds the code.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from corpid.jose.encoding import tuple_bytes
from corpid.rules.characters import with_ascii_digits

ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""32 characters, without the letters that are mistaken for others: I, L, O and U"""
CHARACTERS: Final = 20
"""100 bits: a stolen table of hashes is of no use while a link works"""
_GROUP: Final = 4
_CONFUSED: Final = str.maketrans("OILU", "011V")
_LONGEST: Final = 500
"""characters of a typed or pasted text: a whole link, at most"""


def code_from(random: str) -> str:
    """Return a code as it is shown: five groups of four characters.

    It is derived from a random text of at least 100 bits.
    """
    number = int.from_bytes(sha256(random.encode()).digest())
    letters = "".join(ALPHABET[number >> 5 * place & 31] for place in range(CHARACTERS))
    return "-".join(letters[place : place + _GROUP] for place in range(0, CHARACTERS, _GROUP))


def canonical(typed: str) -> str:
    """Return the 20 characters of a typed code or pasted link.

    Of a link, the fragment counts. Case, spaces, dashes, full-width forms, digits of another script and characters that
    look alike do not matter. Raises ValueError for anything else. Source: D75
    """
    if len(typed) > _LONGEST:
        raise ValueError("too long for a code")
    plain = with_ascii_digits(unicodedata.normalize("NFKC", typed.rpartition("#")[2])).upper()
    letters = "".join(letter for letter in plain if letter.isalnum()).translate(_CONFUSED)
    if len(letters) != CHARACTERS or not set(letters) <= set(ALPHABET):
        raise ValueError(f"a code has {CHARACTERS} letters and digits")
    return letters


def hash_code(code: str) -> str:
    """The key of a link: SHA-256 over its code, hexadecimal. Raises ValueError.

    100 random bits need no slow hash.
    """
    return sha256(tuple_bytes("link-code", canonical(code))).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLink:
    """A link as it is given to its person."""

    page: str
    """the URL of the page that opens links"""
    code: str
    """secret; to be typed on that page if it cannot be followed"""
    expires_at: int

    @property
    def url(self) -> str:
        """The link's URL, with its code in the fragment.

        No log holds the fragment. Source: RFC 9110 §4.2.5
        """
        return f"{self.page}#{self.code}"
