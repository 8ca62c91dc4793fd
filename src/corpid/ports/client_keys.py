"""The key sets of relying parties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from corpid.jose.keys import ClientKeySet
    from corpid.protocol.records import Client


class ClientKeys(Protocol):
    """Key sets of clients, inline or by URL, prepared for use (D27)."""

    async def current(self, client: Client, *, now: float) -> ClientKeySet:
        """Raises KeySetUnavailable, and StoreUnavailable where no set is in memory and the registry cannot be asked."""

    async def refetched(self, client: Client, *, now: float) -> ClientKeySet:
        """The set after an unknown kid or a bad signature: fetched again, at most once a minute.
        An inline set is returned as it is. Raises as `current`."""
