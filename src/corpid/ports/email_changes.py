"""Changes of a person's e-mail address that wait before they take effect (D61)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import msgspec

if TYPE_CHECKING:
    from corpid.ports.audit import AuditEvent

Finished: TypeAlias = Literal["changed", "dropped", "gone"]
"""the new address is in effect; it is not, since person or address are no longer as they were; somebody else finished
or undid the change"""


class EmailChange(msgspec.Struct, frozen=True, kw_only=True):
    """A proven new address that takes effect later, unless it is undone.

    Moments in epoch seconds.
    """

    user_id: str
    link_hash: str
    """of the link that undoes it, SHA-256 in hexadecimal"""
    old_email: str
    """in effect until then; empty if there was none"""
    new_email: str
    proved_at: int
    effective_at: int

    def stands(self, *, enabled: bool, email: str) -> bool:
        """Return whether the change stands for its person as they are now."""
        return enabled and email == self.old_email


class EmailChanges(Protocol):
    """Waiting changes of addresses, at most one for a person.

    One that no longer stands has no effect. It ends with a new password or second factor
    by a link or from an operator, and when the person is disabled or removed.
    """

    async def find(self, user_id: str) -> EmailChange | None:
        """The change of a person that stands."""

    async def by_link(self, link_hash: str) -> EmailChange | None:
        """The change that stands and that this link undoes."""

    async def begin(self, change: EmailChange, event: AuditEvent, *, session_id: str) -> bool:
        """Store a change, and end the person's other sessions.

        False if the session has ended, the address is no longer the old one, or another change waits; nothing is
        written then.
        """

    async def undo(self, change: EmailChange, event: AuditEvent, *, but_session: str = "") -> bool:
        """Remove a waiting change, and end the person's sessions and links.

        Except one session. False if it was finished or undone before; nothing is written then.
        """

    async def due(self, *, now: float, limit: int) -> list[EmailChange]:
        """Changes whose time has come, the earliest first."""

    async def finish(self, change: EmailChange, event: AuditEvent) -> Finished:
        """Remove a waiting change, and write the address if it stands.

        The event has the outcome `refused` if it does not.
        """
