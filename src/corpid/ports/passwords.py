"""Password hashing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet


class HashingSource(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks for a hash, so that nobody's requests displace those of others (D47)."""

    network: str
    """the source network: /24 of IPv4, /48 of IPv6"""
    account: str
    """the user name, in its mapped form"""
    known: bool = False
    """whether the browser is known for the account"""


COMMAND_LINE: Final = HashingSource(network="", account="")
"""a command, whose hashes wait in a queue of its own process"""


class Passwords(Protocol):
    """argon2id in threads of its own (D44)."""

    async def verify(self, password_hash: str | None, password: str, *, source: HashingSource) -> bool:
        """With None the same work is done for nobody. Raises PasswordsBusy."""

    async def hash(self, password: str, *, source: HashingSource) -> str:
        """The hash to store. Raises PasswordsBusy."""

    def guessable(self) -> AbstractSet[str]:
        """What attackers try first, casefolded: for `password_rules.chosen_password`."""

    def outdated(self, password_hash: str) -> bool: ...
