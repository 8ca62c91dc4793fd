"""Idempotency keys, each with the first response to its request (D59)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager


class StoredResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The first response to a request with an Idempotency-Key."""

    request: str
    """a MAC of the request: another request with the same key is refused"""
    status: int
    headers: dict[str, str]
    body: str
    """empty if it is made again for each repetition"""
    shown: str = ""
    """the identifier of the object that such a response shows: no other member of the record is stored"""


class IdempotencyKeys(Protocol):
    """First responses by client and key, stored as long as repeatable."""

    async def get(self, client_id: str, key: str, *, now: float) -> StoredResponse | None: ...
    def transaction(self) -> AbstractAsyncContextManager[object]:
        """A transaction of this task. Raises StoreUnavailable."""

    async def claim(self, client_id: str, key: str, *, now: float, seconds: int) -> bool:
        """Claim a key inside a transaction; True for the first only.

        Waits for another transaction with this key. `now` in epoch seconds, `seconds` until the key may be used again.
        """

    async def put(self, client_id: str, key: str, response: StoredResponse) -> None:
        """Store the response of a claimed key, in the same transaction."""
