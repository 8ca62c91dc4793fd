"""The provider's own keys, as they are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from corpid.ports.audit import AuditEvent
    from corpid.rules.signing_keys import SealedKey


class Keys(Protocol):
    """The provider's own keys, encrypted at rest (D42, D43)."""

    async def list_all(self) -> list[SealedKey]: ...
    async def add(self, key: SealedKey, event: AuditEvent) -> None: ...
    async def add_first(self, keys: Sequence[SealedKey]) -> bool:
        """Store the first keys of a deployment.

        False if there are keys already.
        """

    async def add_first_audit_key(self, key: SealedKey) -> bool:
        """Store the first key that seals the audit.

        False if there was one.
        """

    async def had_audit_key(self) -> bool:
        """Return whether a first audit key was ever stored."""

    async def update(self, key: SealedKey, event: AuditEvent) -> None: ...
    async def change(self, decide: Callable[[list[SealedKey]], Iterable[tuple[SealedKey, AuditEvent]]]) -> None:
        """Write what is decided on the present keys.

        In one transaction. `decide` gets every key, oldest first, and returns those to be added or replaced. Two changes
        happen one after the other; what it raises leaves everything as it was.
        """
