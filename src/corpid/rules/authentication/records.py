"""Factors of a person: password, app, passkeys, recovery codes (D44, D45, D46)."""

from __future__ import annotations

import base64
import unicodedata
from hashlib import sha256
from typing import Final, Literal

import msgspec

from corpid.jose.encoding import tuple_bytes
from corpid.rules.characters import with_ascii_digits

SetBy = Literal["directory", "operator", "user"]


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """A person's password and authenticator app.

    `*_set_by` records who set each one last, so that a directory file never undoes a person's change.
    """

    user_id: str
    password_hash: str | None = None
    password_set_by: SetBy = "directory"
    password_source: str = ""
    """SHA-256 of the directory file's entry, so that applying the file again changes nothing"""
    totp_secret: str | None = None
    """base32; the store encrypts it (D43)"""
    totp_set_by: SetBy = "directory"
    totp_last_step: int = 0

    @property
    def key(self) -> tuple[str, ...]:
        return (self.user_id,)

    @property
    def factors(self) -> tuple[str, str]:
        """The members to compare for a change of factors.

        The last accepted step is left out.
        """
        return (self.password_hash or "", self.totp_secret or "")

    def with_password(self, password_hash: str, by: SetBy) -> Credentials:
        """Return the same credentials with this password.

        No directory file is recorded as its source. Source: D44
        """
        return msgspec.structs.replace(self, password_hash=password_hash, password_set_by=by, password_source="")

    def with_app(self, secret: str, by: SetBy, *, step: int = 0) -> Credentials:
        """Return the same credentials with an app.

        `secret` is in base32; `step` is the step of its last accepted code. Source: D45
        """
        return msgspec.structs.replace(self, totp_secret=secret, totp_set_by=by, totp_last_step=step)

    def without_app(self, by: SetBy) -> Credentials:
        """Return the same credentials without an app (D45)."""
        return msgspec.structs.replace(self, totp_secret=None, totp_set_by=by)


class Passkey(msgspec.Struct, frozen=True, kw_only=True):
    """A person's passkey; times in epoch seconds (D46)."""

    credential_id: str
    """base64url"""
    user_id: str
    public_key: str
    """COSE, base64url"""
    sign_count: int
    name: str
    """the name that its owner gave it"""
    aaguid: str
    """identifies its make"""
    synced: bool
    """true if it can be on several devices of its owner; this never changes"""
    transports: tuple[str, ...]
    created_at: int
    used_at: int = 0
    """0: never used"""


RECOVERY_CODES: Final = 10
RECOVERY_CODE_BYTES: Final = 10  # 80 bits
_GROUP: Final = 4


def recovery_code(random: bytes) -> str:
    """Return a recovery code as text, made from 10 random bytes.

    It has four groups of four characters. Source: RFC 4648 §6, D45
    """
    letters = base64.b32encode(random).decode("ascii").lower()
    return "-".join(letters[place : place + _GROUP] for place in range(0, len(letters), _GROUP))


def recovery_code_hash(user_id: str, code: str) -> str:
    """Return the stored hash of a recovery code, in hexadecimal.

    It is SHA-256 over owner and normalised code; 80 random bits need no slow hash. Source: D45, D75
    """
    plain = with_ascii_digits(unicodedata.normalize("NFKC", code)).lower()
    usual = "".join(letter for letter in plain if letter.isalnum()).replace("0", "o").replace("1", "l")
    return sha256(tuple_bytes("recovery-code", user_id, usual)).hexdigest()


class PersonFactors(msgspec.Struct, frozen=True, kw_only=True):
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
