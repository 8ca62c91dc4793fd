"""The provider's own keys, as they are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from corpid.ports.audit import AuditEvent
    from corpid.rules.signing_keys import ProviderKey


class Keys(Protocol):
    """The provider's own keys, encrypted at rest (D42, D43)."""

    async def list_all(self) -> list[ProviderKey]: ...
    async def add(self, key: ProviderKey, event: AuditEvent) -> None: ...
    async def add_first(self, keys: Sequence[ProviderKey]) -> bool:
        """Store the first keys of a deployment.

        False if there are keys already.
        """

    async def add_first_audit_key(self, key: ProviderKey) -> bool:
        """Store the first key that seals the audit.

        False if there was one.
        """

    async def had_audit_key(self) -> bool:
        """Return whether a first audit key was ever stored."""

    async def update(self, key: ProviderKey, event: AuditEvent) -> None: ...
    async def change(self, decide: Callable[[list[ProviderKey]], Iterable[tuple[ProviderKey, AuditEvent]]]) -> None:
        """Write what is decided on the present keys.

        In one transaction. `decide` gets every key, oldest first, and returns those to be added or replaced. Two
        changes happen one after the other; what it raises leaves everything as it was.
        """
