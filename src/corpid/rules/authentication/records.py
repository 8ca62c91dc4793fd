"""Records of factors: credentials and passkeys (D44, D45, D46)."""

from __future__ import annotations

from typing import Literal

import msgspec

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
