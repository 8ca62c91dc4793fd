"""Factors of a person: what is set up, and recovery codes (D44, D45, D46)."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from corpid.jose.encoding import tuple_bytes

if TYPE_CHECKING:
    from corpid.rules.authentication.records import Credentials, Passkey

HOW_MANY: Final = 10
BYTES: Final = 10  # 80 bits
_GROUP: Final = 4


def code_from(random: bytes) -> str:
    """A recovery code as text: 10 random bytes, four groups of four characters (RFC 4648 §6, D45)."""
    letters = base64.b32encode(random).decode("ascii").lower()
    return "-".join(letters[place : place + _GROUP] for place in range(0, len(letters), _GROUP))


def hashed(user_id: str, code: str) -> str:
    """The stored hash of a code: SHA-256 over owner and normalised code, hexadecimal.

    80 random bits need no slow hash. Source: D45
    """
    usual = "".join(letter for letter in code.lower() if letter.isalnum()).replace("0", "o").replace("1", "l")
    return sha256(tuple_bytes("recovery-code", user_id, usual)).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldFactors:
    """Everything that a person can show, but a code by e-mail, which their address stands for."""

    credentials: Credentials
    passkeys: tuple[Passkey, ...]
    codes: int
    """recovery codes that are left"""

    @property
    def password(self) -> bool:
        """True if there is one, whatever goes with it."""
        return self.credentials.password_hash is not None

    @property
    def app(self) -> bool:
        """True if there is one, whether or not there is the password that it goes with."""
        return self.credentials.totp_secret is not None

    @property
    def typed_code(self) -> bool:
        """True if a code can be asked for: of the app, or one that was kept."""
        return self.app or self.codes > 0

    @property
    def second_factor(self) -> bool:
        """True if there is a second factor."""
        return self.typed_code or bool(self.passkeys)

    @property
    def any(self) -> bool:
        """True if there is something to begin a sign-in with."""
        return self.password or self.app or bool(self.passkeys)

    def can_sign_in_without_passkeys(self, *, mailed: bool) -> bool:
        """Return whether the password stays enough, for good: recovery codes run out. `mailed`: whether a code can go by e-mail (D45)."""
        return self.password and (self.app or mailed)
