"""The switch that makes every process answer temporarily_unavailable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows.directory.write import audit_event
from corpid.rules.audit_actions import AuditAction
from corpid.rules.directory.access import Actor, Object, authorise

if TYPE_CHECKING:
    from corpid.ports import Registry


async def switch_maintenance(registry: Registry, *, on: bool, actor: Actor) -> None:
    """Switch maintenance on or off; running servers follow within 5 s.

    Raises access.Forbidden, StoreUnavailable. Source: Spec 7, D50
    """
    authorise(actor, "write", Object(kind="deployment"))
    action = AuditAction.MAINTENANCE_ON if on else AuditAction.MAINTENANCE_OFF
    await registry.deployment.set_maintenance(on, audit_event(actor, action, ""))
