"""A browser in which nobody has signed in: its cookie value proves itself, and nothing is stored of it (D34).

The value is 32 bytes: when it was issued, 12 random ones, and a MAC over both. Anybody can be a new browser as often
as they like, so only the end of such a value is stored, which takes a sign-in.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from corpid.flows.kinds import NEW_BROWSER_SECONDS
from corpid.jose.encoding import base64url, from_base64url
from corpid.jose.errors import MalformedToken
from corpid.protocol.limits import CLOCKS_APART_SECONDS

if TYPE_CHECKING:
    from corpid.flows.provider import Provider

_TIME_BYTES: Final = 4
_RANDOM_BYTES: Final = 12
_MAC_BYTES: Final = 16
_BYTES: Final = _TIME_BYTES + _RANDOM_BYTES + _MAC_BYTES


def make(provider: Provider, *, now: float) -> str:
    """Return a new cookie value: 32 bytes, base64url. `own_keys.ring` was awaited before (D34)."""
    random = from_base64url(provider.new_id())[:_RANDOM_BYTES]
    contents = int(now).to_bytes(_TIME_BYTES) + random
    return base64url(contents + _mac(provider, contents))


def is_genuine(provider: Provider, cookie: str) -> bool:
    """Whether `make` returned this cookie value, however long ago. `own_keys.ring` was awaited before (D34)."""
    return _issued_at(provider, cookie) is not None


def is_live(provider: Provider, cookie: str, *, now: float) -> bool:
    """Whether `make` returned this cookie value within the last day. `own_keys.ring` was awaited before (D34)."""
    issued_at = _issued_at(provider, cookie)
    return issued_at is not None and -CLOCKS_APART_SECONDS <= now - issued_at < NEW_BROWSER_SECONDS


def browser_id(provider: Provider, cookie: str) -> str:
    """The browser that a genuine cookie value stands for; it tells nothing of the value (D34)."""
    return provider.own_keys.mac("new browser's id", provider.policy.base_url, cookie)


def _issued_at(provider: Provider, cookie: str) -> int | None:
    """Epoch seconds; None for a value that `make` did not return."""
    try:
        value = from_base64url(cookie)
    except MalformedToken:
        return None
    contents, mac = value[:-_MAC_BYTES], value[-_MAC_BYTES:]
    if len(value) != _BYTES or not hmac.compare_digest(mac, _mac(provider, contents)):
        return None
    return int.from_bytes(contents[:_TIME_BYTES])


def _mac(provider: Provider, contents: bytes) -> bytes:
    mac = provider.own_keys.mac("new browser", provider.policy.base_url, contents.hex())
    return from_base64url(mac)[:_MAC_BYTES]
