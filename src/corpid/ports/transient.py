"""What lives for minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager


class TransientUnit(Protocol):
    """The five verbs, inside one unit. Keys are hashes made by `flows.kinds`."""

    async def put(self, kind: str, key: bytes, value: bytes, ttl: float) -> None: ...
    async def get(self, kind: str, key: bytes) -> bytes | None: ...
    async def take(self, kind: str, key: bytes) -> bytes | None:
        """Get and delete, atomically."""

    async def add(self, kind: str, key: bytes, ttl: float, value: bytes = b"") -> bool:
        """True for the first only, until it expires."""

    async def count(self, kind: str, key: bytes, ttl: float) -> int:
        """Raise a counter and return it; the first raise starts its lifetime."""


class TransientStore(Protocol):
    """What lives for minutes."""

    @property
    def reject_issued_before(self) -> float:
        """When this store last lost its memory, epoch seconds: what was issued before must be refused."""

    def unit(self, now: float) -> AbstractAsyncContextManager[TransientUnit]:
        """Several verbs together. Leaving it with an OAuthError commits what was spent; nothing but
        verbs of the stores is awaited inside. Raises StoreUnavailable."""

    async def get(self, kind: str, key: bytes, *, now: float) -> bytes | None:
        """One look outside a unit."""

    async def engine_time(self) -> float | None:
        """Epoch seconds by the clock that decides expiry; None where that is the `now` of each call (D49).
        Raises StoreUnavailable."""

    async def ready(self, *, now: float) -> None:
        """Write something small that ends soon, on every node. Raises StoreUnavailable where one takes no writes (D49)."""

    async def sweep(self, *, now: float) -> int:
        """Remove some expired entries; how many went. Called again and again, it finds them all;
        correctness never depends on it."""
