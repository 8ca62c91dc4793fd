"""Adding and switching off entities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.directory.plan import Change
from corpid.directory.records import Entity
from corpid.flows.administration.adding import addition
from corpid.flows.administration.writing import Refused, audit_event, switched, write

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.directory.access import Actor
    from corpid.ports import Passwords, Registry


async def add_entity(
    registry: Registry, passwords: Passwords, entity_id: str, members: Mapping[str, object], *, actor: Actor
) -> tuple[Entity, tuple[str, ...]]:
    """Add an entity; `members` as in a directory file. Returns it with remarks on its name.

    Raises writing.Refused, access.Forbidden, StoreUnavailable. R-12.4
    """
    adding = await addition(registry, passwords, Entity, "entities", entity_id, members, new_user_id=str)
    event = msgspec.structs.replace(audit_event(actor, "entity.add", entity_id), entity_id=entity_id)
    await write(registry, actor, adding.changes, event)
    return adding.record, adding.remarks


async def switch_entity(registry: Registry, entity_id: str, *, enabled: bool, actor: Actor) -> Entity:
    """Enable or disable an entity, and with it everybody who acts for it.

    Raises writing.Refused when there is none or nothing would change, access.Forbidden, StoreUnavailable. D50
    """
    key = (entity_id,)
    found = (await registry.directory.read(Entity, [key])).get(key)
    if found is None:
        raise Refused(f"there is no entity {entity_id!r}")
    becomes = switched(found, f"entity {entity_id}", enabled=enabled)
    event = audit_event(actor, f"entity.{'enable' if enabled else 'disable'}", entity_id)
    change = Change(verb="change", kind="entity", key=key, was=found, becomes=becomes)
    await write(registry, actor, [change], msgspec.structs.replace(event, entity_id=entity_id))
    return becomes
