"""Audit of replays: something spent is presented again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.rules.directory.access import person_or_anonymous

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext
    from corpid.rules.audit_actions import AuditAction


async def record(context: RequestContext, action: AuditAction, client_id: str) -> None:
    """Write the audit event of a replay.

    Before, the client has been authenticated or its access token verified. It is called inside the unit that detected
    the replay, so the event is stored together with what that unit spent. Raises StoreUnavailable. Source: DESIGN
    "Security", D7, D8, D18
    """
    event = context.event(person_or_anonymous(""), action, client_id=client_id, outcome="refused")
    event = msgspec.structs.replace(event, actor=f"client:{client_id}")
    await context.provider.registry.audit.write(event, now=context.now)
