"""Open invitations of entities, and their e-mails (D60)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from corpid.rules.directory.records import Entity, Membership, User

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager


class OpenInvitation(msgspec.Struct, frozen=True, kw_only=True):
    user: User
    """the placeholder that the membership stands on"""
    membership: Membership
    entity: Entity


class Invitations(Protocol):
    """Invitations, and the sending of their e-mails."""

    async def find(self, user_id: str) -> OpenInvitation | None:
        """Return the invitation of a placeholder, in one statement."""

    async def of_entity(self, entity_id: str, *, after: str, limit: int) -> list[Membership]:
        """Return open invitations of an entity, by identifier."""

    async def due(self, *, now: float, limit: int) -> list[OpenInvitation]:
        """Return invitations with an e-mail to send, untried ones first."""

    async def count_waiting(self) -> tuple[int, int]:
        """The number of members whose e-mail waits, and the oldest's moment.

        Epoch seconds; 0 if there is none.
        """

    async def take(self, invited: OpenInvitation, *, now: float) -> bool:
        """Take an invitation for sending, in one statement.

        Another process gets False, until this one has been silent for `SENDING_SECONDS`; so it does if the invitation
        has changed since it was read.
        """

    async def settle(self, invited: OpenInvitation, *, taken: float, becomes: int) -> bool:
        """Store the outcome of an e-mail, if this process still has it.

        `becomes` is a moment in epoch seconds, or a mark of `rules.directory.invitations`.
        """

    def transaction(self) -> AbstractAsyncContextManager[object]:
        """Changes of this task that become true together, or not at all.

        Raises StoreUnavailable.
        """
