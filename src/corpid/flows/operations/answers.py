"""A request that is carried out once, however often it is sent (D59).

Key, change and answer become true in one transaction. So a process that dies on any line leaves either nothing, and the
same key carries the change out, or all of it, and the same key gets the first answer.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.ports import Registry, StoredAnswer

KEPT_SECONDS: Final = 86400
KEY_CHARACTERS: Final = 255


class KeyReused(Exception):
    """Another request came under this key before."""


class _Claimed(Exception):
    """The key was claimed by a transaction that has ended meanwhile."""


async def once(
    registry: Registry,
    client_id: str,
    key: str,
    request: str,
    carry_out: Callable[[], Awaitable[StoredAnswer]],
    *,
    now: float,
) -> tuple[StoredAnswer, bool]:
    """Carry out a request, or return its first answer.

    Also returns whether the answer is repeated. `request` is a MAC of the request, `now` in epoch seconds. What
    `carry_out` raises leaves nothing behind, the key neither. Raises KeyReused, StoreUnavailable. Source: D59
    """
    hashed = sha256(key.encode()).hexdigest()
    found = await registry.answers.get(client_id, hashed, now=now)
    if found is None:
        try:
            async with registry.answers.transaction():
                if not await registry.answers.claim(client_id, hashed, now=now, seconds=KEPT_SECONDS):
                    raise _Claimed
                answer = await carry_out()
                await registry.answers.put(client_id, hashed, answer)
        except _Claimed:
            found = await registry.answers.get(client_id, hashed, now=now)
        else:
            return answer, False
    if found is None or found.request != request:
        raise KeyReused
    return found, True
