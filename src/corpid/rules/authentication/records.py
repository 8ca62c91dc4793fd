"""Records of factors: credentials and passkeys (D44, D45, D46)."""

from __future__ import annotations

from typing import Literal

import msgspec

SetBy = Literal["directory", "operator", "user"]


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """A person's password and app. `*_set_by` says who set one last, so that a file never undoes a person's change."""

    user_id: str
    password_hash: str | None = None
    password_set_by: SetBy = "directory"
    password_source: str = ""
    """SHA-256 of what the directory file said, so that applying the file again changes nothing"""
    totp_secret: str | None = None
    """base32; the store encrypts it (D43)"""
    totp_set_by: SetBy = "directory"
    totp_last_step: int = 0

    @property
    def key(self) -> tuple[str, ...]:
        return (self.user_id,)

    @property
    def factors(self) -> tuple[str, str]:
        """The members to compare for a change of factors; the last accepted step is left out."""
        return (self.password_hash or "", self.totp_secret or "")

    def with_password(self, password_hash: str, by: SetBy) -> Credentials:
        """The same with this password, of which no directory file knows (D44)."""
        return msgspec.structs.replace(self, password_hash=password_hash, password_set_by=by, password_source="")

    def with_app(self, secret: str, by: SetBy, *, step: int = 0) -> Credentials:
        """The same with an app; `secret` in base32, `step` the last of its codes that was taken (D45)."""
        return msgspec.structs.replace(self, totp_secret=secret, totp_set_by=by, totp_last_step=step)

    def without_app(self, by: SetBy) -> Credentials:
        """The same without an app (D45)."""
        return msgspec.structs.replace(self, totp_secret=None, totp_set_by=by)


class Passkey(msgspec.Struct, frozen=True, kw_only=True):
    """A person's passkey (D46); moments in epoch seconds."""

    credential_id: str
    """base64url"""
    user_id: str
    public_key: str
    """COSE, base64url"""
    sign_count: int
    name: str
    """what its owner calls it"""
    aaguid: str
    """which make it is"""
    synced: bool
    """whether it can be on several devices of its owner, which never changes"""
    transports: tuple[str, ...]
    created_at: int
    used_at: int = 0
    """0: never yet"""
