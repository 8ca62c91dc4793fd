"""The 64 people of the benchmarks, each acting for one entity; no project code, so that a driver can load it."""

from __future__ import annotations

import base64
import hashlib

COUNT = 64
PASSWORD = "benchmark password 2026"
SERVICE = "BENCH"


def user_name(index: int) -> str:
    """The name that person `index` signs in with."""
    return f"bench-{index:02}"


def totp_secret(index: int) -> str:
    """Their TOTP secret, base32 of 160 bits."""
    return base64.b32encode(hashlib.sha1(user_name(index).encode(), usedforsecurity=False).digest()).decode()
