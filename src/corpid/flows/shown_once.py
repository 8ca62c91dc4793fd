"""Secrets that are shown once (D73).

Readable for a minute, in the session that made them, until acknowledged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import encrypted_values, namespaces
from corpid.jose.encoding import MalformedToken

if TYPE_CHECKING:
    from corpid.flows.namespaces import Entry
    from corpid.flows.request_context import RequestContext

_KIND: Final = "shown once"


class _ValueRecord(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    until: float
    secret: str


def _entry(context: RequestContext, place: tuple[str, ...]) -> Entry[str]:
    return namespaces.SHOWN_ONCE.entry(context.provider.policy.base_url, *place)


async def keep(context: RequestContext, place: tuple[str, ...], secret: str) -> None:
    """Keep a secret for a minute, encrypted.

    `place` names its session and page. Raises StoreUnavailable. Source: D73
    """
    stored = _ValueRecord(until=context.now + namespaces.SHOWN_ONCE.seconds, secret=secret)
    sealed = encrypted_values.encrypt_value(context, msgspec.msgpack.encode(stored), _KIND, *place, bound_to=place)
    async with context.provider.transient.batch(context.now) as batch:
        await _entry(context, place).put(batch, sealed)


async def read(context: RequestContext, place: tuple[str, ...]) -> str:
    """The secret of a place, which stays there.

    Empty if its minute is over. Raises StoreUnavailable. Source: D73
    """
    sealed = await _entry(context, place).read(context.provider.transient, now=context.now)
    if sealed is None:
        return ""
    try:
        opened = encrypted_values.decrypt_value(context, sealed, _KIND, *place, bound_to=place)
        stored = msgspec.msgpack.decode(opened, type=_ValueRecord)
    except (MalformedToken, msgspec.DecodeError):
        return ""
    return stored.secret if context.now < stored.until else ""


async def forget(context: RequestContext, place: tuple[str, ...]) -> None:
    """Forget a secret that the person has copied. Raises StoreUnavailable. Source: D73"""
    async with context.provider.transient.batch(context.now) as batch:
        await _entry(context, place).take(batch)
