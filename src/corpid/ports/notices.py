"""Notices that wait to be sent, and what they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from corpid.rules.directory.notices import NoticeKind
from corpid.rules.directory.records import Assignment, ThirdPartyAssignment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.rules.directory.notices import QueuedNotice
    from corpid.rules.directory.provisioning_tokens import RegisteredProvisioningToken

E = TypeVar("E", bound=Assignment | ThirdPartyAssignment)


class NoticeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Notices that one e-mail is about."""

    user_id: str
    kind: NoticeKind
    entity_id: str


class Notices(Protocol):
    """The queue of notices.

    A position says how far the notices of one kind of occasion were made; it moves in the transaction that queues them,
    so that each occasion is seen once, whatever the number of processes.
    """

    async def position(self, name: str, *, first: str) -> str:
        """A position; `first` is where it begins."""

    async def queue(self, notices: Sequence[QueuedNotice], *, position: str, seen: str, becomes: str) -> bool:
        """Queue notices and move a position, in one transaction.

        False, and nothing is written, if the position is no longer the one that was seen. A notice about the same
        occasion, or to a person who is gone, is left out.
        """

    async def due(self, *, now: float, limit: int) -> list[NoticeGroup]:
        """Groups with a notice that is due, the longest waiting first."""

    async def take(self, group: NoticeGroup, *, by: str, now: float) -> list[QueuedNotice]:
        """Take all unsent notices of a group, in one statement.

        Another process gets none of them until this one has been silent for `SENDING_SECONDS`.
        """

    async def settle(self, group: NoticeGroup, *, by: str, sent_at: int = 0, due_at: int = 0) -> None:
        """Store the outcome of an e-mail, if this process still has it.

        Either its notices were sent (or dropped), or they are due again later.
        """

    async def sweep(self, *, before: float) -> int:
        """Remove some notices that were sent before a moment; how many."""

    async def ending(self, kind: type[E], *, until: str, place: tuple[str, ...], limit: int) -> list[E]:
        """Roles that end after a place, up to a day, in order.

        `place` is the last day, the entity and the rest of the key of the one before.
        """

    async def ending_on(self, kind: type[E], entity_id: str, end_date: str, *, limit: int) -> tuple[list[E], int]:
        """Some of the roles that end on a day, and their number."""

    async def expiring_tokens(self, *, after: int, until: int, limit: int) -> list[RegisteredProvisioningToken]:
        """Provisioning tokens that expire after a moment, up to another, in order."""
