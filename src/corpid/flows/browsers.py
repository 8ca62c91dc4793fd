"""The browser at the other end: a cookie value maps to a server-side browser id (D34)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.flows import kinds

if TYPE_CHECKING:
    from corpid.flows.provider import Provider
    from corpid.ports import Session, TransientUnit


class Browser(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A browser that carries our cookie; interactions, claims and form tokens are bound to `browser_id`."""

    browser_id: str
    session_id: str = ""


def _key(provider: Provider, cookie: str) -> bytes:
    return kinds.key(kinds.BROWSER, provider.policy.base_url, cookie)


async def recognise(provider: Provider, cookie: str | None, *, now: float) -> Browser | None:
    """The browser of a cookie value, None for a value that we never gave or that was replaced (D34)."""
    if not cookie:
        return None
    value = await provider.transient.get(kinds.BROWSER.name, _key(provider, cookie), now=now)
    return None if value is None else msgspec.msgpack.decode(value, type=Browser)


async def welcome(provider: Provider, unit: TransientUnit, browser: Browser) -> str:
    """Give a browser a new cookie value and return it: 32 random bytes, base64url (D34)."""
    cookie = provider.new_id()
    await unit.put(kinds.BROWSER.name, _key(provider, cookie), msgspec.msgpack.encode(browser), kinds.BROWSER.seconds)
    return cookie


async def replace(provider: Provider, unit: TransientUnit, old_cookie: str, browser: Browser) -> str:
    """Move the mapping to a new cookie value and kill the old one: at every sign-in (D34)."""
    await unit.take(kinds.BROWSER.name, _key(provider, old_cookie))
    return await welcome(provider, unit, browser)


async def session_of(provider: Provider, browser: Browser | None, *, now: float) -> Session | None:
    """The live session of a browser, None without one or with single sign-on off (D30)."""
    if browser is None or not browser.session_id or not provider.policy.session_seconds:
        return None
    session = await provider.registry.sessions.get(browser.session_id, now=now)
    if session is None or session.browser_id != browser.browser_id:
        return None
    return session
