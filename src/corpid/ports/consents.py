"""Remembered consents (D29)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from corpid.ports.audit import AuditEvent
    from corpid.rules.oauth.consent import Consent


class Consents(Protocol):
    """Remembered consents. They end with their membership and client (D29)."""

    async def find_remembered(
        self, user_id: str, entity_id: str, client_id: str, issuer_id: str, *, now: float
    ) -> list[Consent]:
        """The live consents for one person, entity, client and issuer."""

    async def list_for_user(self, user_id: str, *, now: float) -> list[Consent]:
        """The live consents of a person, by entity and client."""

    async def give(self, consent: Consent, event: AuditEvent) -> bool:
        """Store a consent, or renew the one with the same scopes.

        False if the membership or the client does not exist; nothing is written then.
        """

    async def withdraw(self, user_id: str, entity_id: str, client_id: str, event: AuditEvent) -> bool:
        """Remove the consents for one person, entity and client.

        At every issuer. False if there was none; nothing is written then.
        """

    async def sweep(self, *, now: float) -> int:
        """Remove some expired ones.

        The number removed. Calling it until that is 0 removes them all.
        """
