"""Port of what all processes of a deployment share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from corpid.ports.audit import AuditEvent


class Deployment(Protocol):
    """Switches that all processes see."""

    async def ready(self) -> None:
        """Write something small. Raises StoreUnavailable if the store takes no writes (D49)."""

    async def maintenance(self) -> bool: ...
    async def set_maintenance(self, on: bool, event: AuditEvent) -> None: ...
    async def is_for_developers(self) -> bool:
        """Return whether the store is a demo's, which other servers refuse (D66)."""

    async def keep_for_developers(self) -> None:
        """Mark the store as a demo's, for ever (D66)."""

    async def audit_stream(self) -> str:
        """The position of the audit's stream; empty before the first one (docs/decisions/0030)."""

    async def change_audit_stream(
        self, seen: str, position: str, event: AuditEvent | None = None, *, now: float | None = None
    ) -> bool:
        """Replace the position if it is still the one that was seen.

        Of several processes one does. The event is written in the same transaction.
        """
