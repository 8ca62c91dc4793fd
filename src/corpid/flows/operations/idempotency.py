"""Idempotency keys: a request takes effect once, however often it is sent.

Key, change and response are committed in one transaction. So a process that dies on any line leaves either nothing, and
the same key carries the change out, or all of it, and the same key gets the first response. Source: D59
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.rules.oauth.api_client import StoredResponse
    from corpid.stores.sql.registry import Registry

    Save: TypeAlias = "Callable[[StoredResponse], Awaitable[None]]"

KEPT_SECONDS: Final = 86400
KEY_CHARACTERS: Final = 255


class KeyReused(Exception):
    """An earlier request with this key was another one."""


class _KeyClaimed(Exception):
    """The key was claimed by a transaction that has ended meanwhile."""


async def run_once(
    registry: Registry,
    client_id: str,
    key: str,
    request: str,
    carry_out: Callable[[], Awaitable[StoredResponse]],
    *,
    now: float,
) -> tuple[StoredResponse, bool]:
    """Carry out a request, or return its first response.

    Also returns whether the response is repeated. `request` is a MAC of the request, `now` in epoch seconds. If
    `carry_out` raises, nothing is stored, not even the key. Raises KeyReused, StoreUnavailable. Source: D59
    """
    hashed = _hashed(key)

    async def at_once() -> StoredResponse:
        async with registry.transaction():
            await _claim(registry, client_id, hashed, now=now)
            response = await carry_out()
            await registry.idempotency_keys.put(client_id, hashed, response)
        return response

    return await _first(registry, client_id, hashed, request, at_once, now=now)


async def once_at_end(
    registry: Registry,
    client_id: str,
    key: str,
    request: str,
    carry_out: Callable[[Save], Awaitable[StoredResponse]],
    *,
    now: float,
) -> tuple[StoredResponse, bool]:
    """Carry out a long request, or return its first response.

    As `run_once`, but nothing is locked while it is prepared: `carry_out` awaits its argument, with the response to
    repeat, in the transaction of its last change. Source: D59
    """
    hashed = _hashed(key)

    async def save(response: StoredResponse) -> None:
        await _claim(registry, client_id, hashed, now=now)
        await registry.idempotency_keys.put(client_id, hashed, response)

    return await _first(registry, client_id, hashed, request, lambda: carry_out(save), now=now)


async def _first(
    registry: Registry,
    client_id: str,
    hashed: str,
    request: str,
    carry_out: Callable[[], Awaitable[StoredResponse]],
    *,
    now: float,
) -> tuple[StoredResponse, bool]:
    found = await registry.idempotency_keys.get(client_id, hashed, now=now)
    if found is None:
        try:
            return await carry_out(), False
        except _KeyClaimed:
            found = await registry.idempotency_keys.get(client_id, hashed, now=now)
    if found is None or found.request != request:
        raise KeyReused
    return found, True


async def _claim(registry: Registry, client_id: str, hashed: str, *, now: float) -> None:
    if not await registry.idempotency_keys.claim(client_id, hashed, now=now, seconds=KEPT_SECONDS):
        raise _KeyClaimed


def _hashed(key: str) -> str:
    return sha256(key.encode()).hexdigest()
