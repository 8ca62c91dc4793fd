"""A person of the sandbox, with what they know and hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from corpid.protocol.totp import STEP_SECONDS, code_at


@dataclass(slots=True, kw_only=True)
class Person:
    """Someone who can sign in: user name, password and the secret of their authenticator app (base32)."""

    user_name: str
    password: str
    totp_secret: str
    name: str = ""
    entities: tuple[str, ...] = ()
    """identifiers of the entities they act for"""
    about: str = ""
    used_step: int = field(default=0, compare=False)

    def code(self, now: float) -> str:
        """The code that their app shows at this moment (epoch seconds)."""
        return code_at(self.totp_secret, now)

    def fresh_code(self, now: float) -> str:
        """A code not yet used: of this step, or of the next, which the provider takes as well (D45).

        Raises RuntimeError where both were used: the person has to wait, as in life.
        """
        step = max(int(now) // STEP_SECONDS, self.used_step + 1)
        if step > int(now) // STEP_SECONDS + 1:
            raise RuntimeError(f"{self.user_name} used this code and the next; wait {STEP_SECONDS} seconds")
        self.used_step = step
        return code_at(self.totp_secret, step * STEP_SECONDS)
