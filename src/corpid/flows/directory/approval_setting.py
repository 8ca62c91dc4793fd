"""An entity's choice of which changes need approval (D55)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.flows.directory.approvals import submit
from corpid.rules.directory import approvals
from corpid.rules.directory.changes import Precondition
from corpid.rules.directory.levels import APPROVERS
from corpid.rules.directory.plan import Change
from corpid.rules.directory.records import Entity

if TYPE_CHECKING:
    from corpid.rules.directory.actors import Actor
    from corpid.rules.directory.records import Approvals, ChangeRequest
    from corpid.stores.sql.registry import Registry


def lowers(entity: Entity, chosen: Approvals) -> bool:
    """Return whether fewer changes would need approval, which needs approval itself. Source: D55"""
    return approvals.step(_change(entity, chosen)) < 0


async def lacks_approvers(registry: Registry, entity: Entity, chosen: Approvals) -> bool:
    """Return whether too few people are there who can approve.

    Raises StoreUnavailable. Source: D55
    """
    if approvals.step(_change(entity, chosen)) <= 0:
        return False
    return approvals.approvers(await registry.directory.administrators(entity.entity_id)) < APPROVERS


async def choose(
    registry: Registry, actor: Actor, entity: Entity, chosen: Approvals, *, reason: str, now: float, unique: str
) -> ChangeRequest | None:
    """Change which changes need approval, or request it.

    `entity` as the actor has seen it; `reason`, `now` and `unique` as in `approvals.submit`. Raises Refused with too
    few people who can approve, access.Forbidden, Conflict, StoreUnavailable. Source: D55
    """
    seen = [Precondition(Entity, entity.key, entity)]
    return await submit(registry, actor, [_change(entity, chosen)], reason=reason, now=now, unique=unique, seen=seen)


def _change(entity: Entity, chosen: Approvals) -> Change:
    becomes = msgspec.structs.replace(entity, approvals=chosen)
    return Change(verb="change", kind="entity", key=entity.key, was=entity, becomes=becomes)
