"""The latest refusals of each client (D28)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence


class ClientRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """A refused request of a client, or in its name."""

    client_id: str
    claimed: bool
    """whether nobody had proven that it is the client's"""
    at: float
    """epoch seconds"""
    request_id: str
    """the reference that the answer named"""
    method: str
    path: str
    reason: str
    """its code in the catalogue of refusals"""
    detail: str
    """what was wrong, as in the log"""


class ClientRefusals(Protocol):
    """The latest refusals of each client."""

    async def add(self, refusals: Sequence[ClientRefusal], *, kept: int) -> None:
        """Add refusals of one client, all claimed or none.

        One short transaction. Only the `kept` latest of them stay. Those of a client that does not exist are dropped.
        """

    async def list_for_client(self, client_id: str) -> list[ClientRefusal]:
        """Every refusal kept of a client, the latest first."""
