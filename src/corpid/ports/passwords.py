"""Password hashing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet


class Passwords(Protocol):
    """argon2id in threads of its own (D44)."""

    async def verify(self, password_hash: str | None, password: str) -> bool:
        """With None the same work is done for nobody. Raises PasswordsBusy."""

    async def hash(self, password: str) -> str: ...
    def guessable(self) -> AbstractSet[str]:
        """What attackers try first, casefolded: for `password_rules.chosen_password`."""

    def outdated(self, password_hash: str) -> bool: ...
