"""What a person has to sign in with, looked at as a whole (D44, D45, D46)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corpid.directory.records import Credentials, Passkey


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldFactors:
    """Everything that a person can show, but a code by e-mail, which their address stands for."""

    credentials: Credentials
    passkeys: tuple[Passkey, ...]
    codes: int
    """recovery codes that are left"""

    @property
    def password(self) -> bool:
        """Whether there is one, whatever goes with it."""
        return self.credentials.password_hash is not None

    @property
    def app(self) -> bool:
        """Whether there is one, whether or not there is the password that it goes with."""
        return self.credentials.totp_secret is not None

    @property
    def typed_code(self) -> bool:
        """Whether a code can be asked for: of the app, or one that was kept."""
        return self.app or self.codes > 0

    @property
    def second_factor(self) -> bool:
        """Whether there is anything beside a password."""
        return self.typed_code or bool(self.passkeys)

    @property
    def any(self) -> bool:
        """Whether there is something to begin a sign-in with."""
        return self.password or self.app or bool(self.passkeys)

    def can_sign_in_without_passkeys(self, *, mailed: bool) -> bool:
        """Whether the password stays enough, for good: recovery codes run out. `mailed`: whether a code can go by e-mail (D45)."""
        return self.password and (self.app or mailed)
