"""A password that somebody has chosen, or an operator for them (D44)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.directory.password_rules import chosen_password

if TYPE_CHECKING:
    from corpid.directory.records import User
    from corpid.ports import HashingSource, Passwords


async def hashed(passwords: Passwords, user: User, password: str, *, source: HashingSource) -> str:
    """The hash to keep of a password that this person may have. Raises PasswordRefused, PasswordsBusy (D44)."""
    chosen = chosen_password(password, user_name=user.user_name, blocklist=passwords.guessable())
    return await passwords.hash(chosen, source=source)
