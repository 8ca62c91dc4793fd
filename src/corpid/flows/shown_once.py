"""Secrets that are shown once (D73).

Readable for a minute, in the session that made them, until acknowledged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows import namespaces
from corpid.jose import encryption
from corpid.jose.encoding import MalformedToken, from_base64url, tuple_bytes

if TYPE_CHECKING:
    from corpid.flows.namespaces import Entry
    from corpid.flows.request_context import RequestContext


def _entry(context: RequestContext, place: tuple[str, ...]) -> Entry[str]:
    return namespaces.SHOWN_ONCE.entry(context.provider.policy.base_url, *place)


def _key(context: RequestContext, place: tuple[str, ...]) -> bytes:
    return from_base64url(context.keys.mac("shown once", context.provider.policy.base_url, *place))


async def keep(context: RequestContext, place: tuple[str, ...], secret: str) -> None:
    """Keep a secret for a minute, encrypted.

    `place` names its session and page. Raises StoreUnavailable. Source: D73
    """
    nonce = from_base64url(context.provider.new_id())[: encryption.NONCE_BYTES]
    sealed = encryption.seal(secret.encode(), _key(context, place), nonce, context=tuple_bytes(*place))
    async with context.provider.transient.unit(context.now) as unit:
        await _entry(context, place).put(unit, sealed)


async def read(context: RequestContext, place: tuple[str, ...]) -> str:
    """The secret of a place, which stays there.

    Empty if its minute is over. Raises StoreUnavailable. Source: D73
    """
    sealed = await _entry(context, place).read(context.provider.transient, now=context.now)
    if sealed is None:
        return ""
    try:
        return encryption.unseal(sealed, _key(context, place), context=tuple_bytes(*place)).decode()
    except (MalformedToken, ValueError):
        return ""


async def forget(context: RequestContext, place: tuple[str, ...]) -> None:
    """Forget a secret that the person has copied. Raises StoreUnavailable. Source: D73"""
    async with context.provider.transient.unit(context.now) as unit:
        await _entry(context, place).take(unit)
