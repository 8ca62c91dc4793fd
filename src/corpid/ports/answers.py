"""First answers to requests that name an Idempotency-Key (D59)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager


class StoredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The first answer to a request."""

    request: str
    """a MAC of the request: another one may not come under the same key"""
    status: int
    headers: dict[str, str]
    body: str


class Answers(Protocol):
    """First answers by client and key.

    Each is there for as long as it may be repeated.
    """

    async def get(self, client_id: str, key: str, *, now: float) -> StoredAnswer | None: ...
    def transaction(self) -> AbstractAsyncContextManager[object]:
        """Changes of this task that become true together, or not at all.

        Raises StoreUnavailable.
        """

    async def claim(self, client_id: str, key: str, *, now: float, seconds: int) -> bool:
        """Note a key, inside a transaction.

        True for the first only: another transaction with this key is waited for.
        """

    async def put(self, client_id: str, key: str, answer: StoredAnswer) -> None:
        """Store the answer of a claimed key, inside the same transaction."""
