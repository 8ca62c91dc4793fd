"""The cost of argon2id hashes: profiles, bounds, raising of stored ones.

Sources: D44; RFC 9106 §4; OWASP Password Storage Cheat Sheet, "Argon2id".
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec


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


def is_safe(cost: HashCost) -> bool:
    """Return whether passwords are protected, and a sign-in can bear it.

    At least what OWASP asks for; at most 256 MiB, 10 passes and 16 lanes. Source: D44, docs/decisions/0031
    """
    enough = any(cost.memory >= memory and cost.passes >= passes for memory, passes in _LEAST)
    return enough and cost.lanes > 0 and all(given <= most for given, most in zip(cost, _MOST, strict=True))


def chosen_cost(text: str) -> HashCost:
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
    if not is_safe(cost):
        raise ValueError(f"{text} is outside the safe bounds: {BOUNDS}")
    return cost


def stored_cost(encoded: str) -> HashCost | None:
    """The cost of an encoded argon2id hash; None for other text.

    Source: RFC 9106 §4, D44
    """
    parts = _ENCODED.fullmatch(encoded)
    return HashCost(*map(int, parts.groups()[:3])) if parts else None


def accept_hash(encoded: str) -> str:
    """An encoded argon2id hash within the safe bounds.

    Raises ValueError with what is wrong. Source: D44
    """
    parts, cost = _ENCODED.fullmatch(encoded), stored_cost(encoded)
    if (
        not parts
        or not cost
        or any(len(part) not in lengths for part, lengths in zip(parts.groups()[3:], _LENGTHS, strict=True))
    ):
        raise ValueError("not an argon2id hash: it starts with $argon2id$v=19$m=…,t=…,p=…$")
    if not is_safe(cost):
        raise ValueError(f"{cost} of this hash is outside the safe bounds: {BOUNDS}")
    return encoded


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
