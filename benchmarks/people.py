"""The people of the benchmarks; no project code, so that a driver can load it.

64 act for one entity each. Those of `many_entities` act for as many as their name says. For whole sign-ins there are also
32 of each kind in `KINDS`.
"""

from __future__ import annotations

import base64
import hashlib

COUNT = 64
COUNT_OF_KIND = 32
PASSWORD = "benchmark password 2026"
SERVICE = "BENCH"


def user_name(index: int) -> str:
    """The name that person `index` signs in with."""
    return f"bench-{index:02}"


KINDS = {"app": (1, False), "mail": (1, True), "app-several": (5, False), "mail-several": (5, True)}
"""kind of people → how many entities each has, and whether they have an e-mail address instead of an authenticator app"""


def of_kind(kind: str, index: int) -> str:
    """The name of person `index` of a kind in KINDS."""
    return f"bench-{kind}-{index:02}"


def address(name: str) -> str:
    """A person's e-mail address."""
    return f"{name}@people.example"


def many_entities(count: int) -> str:
    """The name of the person who acts for so many entities."""
    return f"bench-of-{count}"


def entity_of_many(index: int) -> str:
    """The identifier of entity `index`, counted from 0, of a person with many."""
    return f"M{index:08}"


def totp_secret(name: str) -> str:
    """A person's TOTP secret, base32 of 160 bits."""
    return base64.b32encode(hashlib.sha1(name.encode(), usedforsecurity=False).digest()).decode()
