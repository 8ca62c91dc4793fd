"""Recovery codes: ten that a person keeps for the day their other factor is lost (D45)."""

from __future__ import annotations

import base64
from hashlib import sha256
from typing import Final

from corpid.jose.encoding import tuple_bytes

HOW_MANY: Final = 10
BYTES: Final = 10  # 80 bits
_GROUP: Final = 4


def code_from(random: bytes) -> str:
    """How a code is shown: 10 random bytes as four groups of four letters and digits (RFC 4648 §6, D45)."""
    letters = base64.b32encode(random).decode("ascii").lower()
    return "-".join(letters[place : place + _GROUP] for place in range(0, len(letters), _GROUP))


def hashed(user_id: str, code: str) -> str:
    """What is kept of a code: SHA-256 over its owner and the code, however it was typed, in hexadecimal.

    80 random bits need no slow hash. Source: D45
    """
    usual = "".join(letter for letter in code.lower() if letter.isalnum()).replace("0", "o").replace("1", "l")
    return sha256(tuple_bytes("recovery-code", user_id, usual)).hexdigest()
