"""Rules for new passwords, and the cost of their argon2id hashes.

Source: D44, D75, RFC 9106 §4, OWASP Password Storage Cheat Sheet, "Argon2id"
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

import msgspec

from corpid.texts import Phrase, phrase


class HashCost(NamedTuple):
    """The parameters of argon2id; memory in KiB."""

    memory: int
    passes: int
    lanes: int

    def __str__(self) -> str:
        return f"m={self.memory},t={self.passes},p={self.lanes}"

    @property
    def work(self) -> int:
        """The KiB that a hash writes: its memory, once for each pass."""
        return self.memory * self.passes

    def exceeds(self, stored: HashCost) -> bool:
        """Return whether it takes more memory or work, and less of neither.

        Lanes say how the work is divided, not how much it is. Source: D44, docs/decisions/0031
        """
        more = (self.memory, self.work) != (stored.memory, stored.work)
        return more and self.memory >= stored.memory and self.work >= stored.work


class PasswordRefused(Exception):
    """A password that may not be chosen.

    The sentence says what to change.
    """

    def __init__(self, sentence: Phrase) -> None:
        super().__init__(sentence)
        self.sentence = sentence


RFC_9106: Final = HashCost(65_536, 3, 4)
"""the second profile of RFC 9106, for machines with less memory"""
OWASP: Final = HashCost(19_456, 2, 1)
PROFILES: Final = {"rfc9106": RFC_9106, "owasp": OWASP}
_LEAST: Final = ((47_104, 1), (OWASP.memory, OWASP.passes), (12_288, 3), (9_216, 4), (7_168, 5))
"""memory in KiB and passes that OWASP calls equally strong"""
_MOST: Final = HashCost(262_144, 10, 16)
BOUNDS: Final = (
    f"at least m={OWASP.memory},t={OWASP.passes},p=1 or an equivalent ("
    + "; ".join(f"m={memory},t={passes}" for memory, passes in _LEAST if memory != OWASP.memory)
    + f") and at most {_MOST}"
)
_COST: Final = re.compile(r"m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})")
_ENCODED: Final = re.compile(rf"\$argon2id\$v=19\${_COST.pattern}\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)")
_LENGTHS: Final = (range(11, 87), range(22, 87))
"""base64 characters of salt (8 to 64 bytes) and digest (16 to 64 bytes)"""
SHORTEST_PASSWORD: Final = 12
LONGEST_PASSWORD: Final = 128
LONGEST_TYPED: Final = 4 * LONGEST_PASSWORD
"""code points before NFC, which combines at most four of them into one; the bound keeps normalising cheap"""
BEYOND_THE_NAME: Final = 6
"""characters that a password must have in addition to a shorter user name"""
_SHORTEST_NAME: Final = 4
"""characters of a user name, or letters of a name, that no password contains"""
_BETWEEN_NAMES: Final = re.compile(r"[\s\-.,'\u2019()/]+")
_NOT_ASCII_SPACE: Final = re.compile(r"[^\S\x00-\x7f\x85\u2028\u2029]")
"""every space (Zs) but U+0020"""


def require_allowed_password(password: str, *, user_name: str, name: str, blocklist: AbstractSet[str]) -> str:
    """Return the normalised form of an allowed password.

    It has 12 to 128 characters, is not easily guessed and contains neither the user name nor a part of the person's
    `name`. `blocklist` holds casefolded passwords. There are no rules of composition. Raises PasswordRefused. Source:
    D44, D75 (NIST SP 800-63B §5.1.1.2)
    """
    if len(password) > LONGEST_TYPED:
        raise PasswordRefused(
            phrase("Choose a password of at most {characters} characters.", characters=LONGEST_PASSWORD)
        )
    chosen = normalise_password(password)
    if len(chosen) < SHORTEST_PASSWORD:
        raise PasswordRefused(
            phrase(
                "Choose a password of at least {characters} characters. Several words make a good one.",
                characters=SHORTEST_PASSWORD,
            )
        )
    if len(chosen) > LONGEST_PASSWORD:
        raise PasswordRefused(
            phrase("Choose a password of at most {characters} characters.", characters=LONGEST_PASSWORD)
        )
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


def normalise_password(password: str) -> str:
    """Return the form of a password that is hashed.

    The same password gives the same form on every keyboard. Source: RFC 8265 §4.2.2, D44, D75
    """
    return unicodedata.normalize("NFC", _NOT_ASCII_SPACE.sub(" ", password))


def list_typed_forms(password: str) -> tuple[str, ...]:
    """The forms of a typed password to compare, each once.

    Non-ASCII spaces become spaces, then the text becomes NFC: some keyboards type a no-break space. The second form, if
    there is one, keeps those spaces, as passwords were hashed before. Source: RFC 8265 §4.2.2, D75
    """
    return tuple(dict.fromkeys((normalise_password(password), unicodedata.normalize("NFC", password))))


def _names(name: str) -> list[str]:
    """The parts of a name that no password contains."""
    parts = _BETWEEN_NAMES.split(normalise_password(name).casefold())
    return [each for each in parts if sum(map(str.isalpha, each)) >= _SHORTEST_NAME]


class HashingSource(msgspec.Struct, frozen=True, kw_only=True):
    """The source of a hashing request, for a fair queue (D47)."""

    network: str
    """the source network: /24 of IPv4, /48 of IPv6"""
    account: str
    """the user name, in its mapped form"""
    known: bool = False
    """whether the browser is known for the account"""


COMMAND_LINE: Final = HashingSource(network="", account="")
"""a command, whose hashes wait in its process's own queue"""


def is_safe_cost(cost: HashCost) -> bool:
    """Return whether passwords are protected, and a sign-in can bear it.

    At least what OWASP asks for; at most 256 MiB, 10 passes and 16 lanes. Source: D44, docs/decisions/0031
    """
    enough = any(cost.memory >= memory and cost.passes >= passes for memory, passes in _LEAST)
    return enough and cost.lanes > 0 and all(given <= most for given, most in zip(cost, _MOST, strict=True))


def parse_hash_cost(text: str) -> HashCost:
    """The cost that a profile's name or three numbers stand for.

    Raises ValueError with what to write. Source: D44
    """
    if text in PROFILES:
        return PROFILES[text]
    numbers = _COST.fullmatch(text)
    if numbers is None:
        raise ValueError(
            f"{text[:80]!r} is no password_hash: write {', '.join(PROFILES)}, or numbers such as {RFC_9106}"
        )
    cost = HashCost(*map(int, numbers.groups()))
    if not is_safe_cost(cost):
        raise ValueError(f"{text} is outside the safe bounds: {BOUNDS}")
    return cost


def read_hash_cost(encoded: str) -> HashCost | None:
    """The cost of an encoded argon2id hash; None for other text.

    Source: RFC 9106 §4, D44
    """
    parts = _ENCODED.fullmatch(encoded)
    return HashCost(*map(int, parts.groups()[:3])) if parts else None


def require_safe_hash(encoded: str) -> str:
    """An encoded argon2id hash within the safe bounds.

    Raises ValueError with what is wrong. Source: D44
    """
    parts, cost = _ENCODED.fullmatch(encoded), read_hash_cost(encoded)
    if (
        not parts
        or not cost
        or any(len(part) not in lengths for part, lengths in zip(parts.groups()[3:], _LENGTHS, strict=True))
    ):
        raise ValueError("not an argon2id hash: it starts with $argon2id$v=19$m=…,t=…,p=…$")
    if not is_safe_cost(cost):
        raise ValueError(f"{cost} of this hash is outside the safe bounds: {BOUNDS}")
    return encoded
