"""Signing out (D30)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows import browsers
from corpid.flows.browsers import Browser
from corpid.ports import AuditEvent

if TYPE_CHECKING:
    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider
    from corpid.ports import Session


async def sign_out(provider: Provider, caller: Caller, cookie: str, session: Session) -> str:
    """End a session; returns the browser's new cookie value.

    It is a new browser from here on: what other tabs had begun, whoever sits there next cannot go on with.
    Source: D30, D34
    """
    event = AuditEvent(actor=f"user:{session.user_id}", action="session.end", request_id=caller.request_id)
    async with provider.transient.unit(caller.now) as unit:
        await provider.registry.sessions.end(session.session_id, event)
        return await browsers.replace(provider, unit, cookie, Browser(browser_id=provider.new_id()))
