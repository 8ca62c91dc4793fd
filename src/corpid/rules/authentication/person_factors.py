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
    """Return a recovery code as text, made from 10 random bytes.

    It has four groups of four characters. Source: RFC 4648 §6, D45
    """
    letters = base64.b32encode(random).decode("ascii").lower()
    return "-".join(letters[place : place + _GROUP] for place in range(0, len(letters), _GROUP))


def hashed(user_id: str, code: str) -> str:
    """Return the stored hash of a recovery code, in hexadecimal.

    It is SHA-256 over owner and normalised code; 80 random bits need no slow hash. Source: D45
    """
    usual = "".join(letter for letter in code.lower() if letter.isalnum()).replace("0", "o").replace("1", "l")
    return sha256(tuple_bytes("recovery-code", user_id, usual)).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldFactors:
    """All factors of a person, except codes by e-mail.

    The e-mail address stands for those codes.
    """

    credentials: Credentials
    passkeys: tuple[Passkey, ...]
    codes: int
    """recovery codes that are left"""

    @property
    def password(self) -> bool:
        """True if a password is set, even without a second factor."""
        return self.credentials.password_hash is not None

    @property
    def app(self) -> bool:
        """True if an app is set up, even without a password."""
        return self.credentials.totp_secret is not None

    @property
    def typed_code(self) -> bool:
        """True if a code of the app or a recovery code exists."""
        return self.app or self.codes > 0

    @property
    def second_factor(self) -> bool:
        """True if there is a second factor."""
        return self.typed_code or bool(self.passkeys)

    @property
    def any(self) -> bool:
        """True if any factor can begin a sign-in."""
        return self.password or self.app or bool(self.passkeys)

    def can_sign_in_without_passkeys(self, *, mailed: bool) -> bool:
        """Return whether the password and a lasting second factor are available.

        Recovery codes do not count, since they run out. `mailed` says that codes can be sent by e-mail. Source: D45
        """
        return self.password and (self.app or mailed)
