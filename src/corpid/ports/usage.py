"""Counters of clients' use of deprecated things."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence


class UseCount(msgspec.Struct, frozen=True, kw_only=True):
    """A count of a client's uses of a generation or deprecation."""

    client_id: str
    generation: str
    habit: str
    """an identifier of `deprecated_usage`; the empty one counts every sign-in"""
    count: int
    last_at: int


class Usage(Protocol):
    """Counters of clients' use of deprecated things, without their requests."""

    async def add(self, counts: Sequence[UseCount]) -> None:
        """Add to the counters, in one short transaction.

        The later moment of each stays. Counts of a client that does not exist are dropped.
        """

    async def list_all(self) -> list[UseCount]: ...
