"""Signing out (D30)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows import browsers
from corpid.flows.browsers import Browser
from corpid.ports import AuditEvent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider
    from corpid.ports import Session


async def held(provider: Provider, browser: Browser | None, *, now: float) -> list[Session]:
    """The live sessions of a browser: of single sign-on, and of the account's own pages (D30)."""
    ids = (browser.session_id, browser.account_id) if browser is not None else ()
    found = [await provider.registry.sessions.get(each, now=now) for each in ids if each]
    return [each for each in found if each is not None and browser and each.browser_id == browser.browser_id]


async def sign_out(provider: Provider, caller: Caller, cookie: str, ending: Iterable[Session]) -> str:
    """End the sessions of a browser; returns its new cookie value.

    It is a new browser from here on: what other tabs had begun, whoever sits there next cannot go on with.
    Source: D30, D34
    """
    async with provider.transient.unit(caller.now) as unit:
        for session in ending:
            event = AuditEvent(actor=f"user:{session.user_id}", action="session.end", request_id=caller.request_id)
            await provider.registry.sessions.end(session.session_id, event)
        return await browsers.replace(provider, unit, cookie, Browser(browser_id=provider.new_id()))
