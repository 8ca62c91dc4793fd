"""Entities and services, changed under the rules of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows.directory.apply import (
    ADDS,
    CHANGES,
    ApplyResult,
    carry_out,
    prepare_addition,
    prepare_entry,
    write_one_change,
)
from corpid.flows.directory.finding import LAST, find_entity, find_service
from corpid.flows.directory.write import Refused, switch_record
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.records import Change, Entity
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.outbound.passwords import Passwords
    from corpid.rules.directory.actors import Actor
    from corpid.rules.directory.records import Service
    from corpid.rules.oauth.records import Client
    from corpid.stores.sql.registry import Registry

_AT_ONCE: Final = 200
_MOST: Final = 2000
"""clients that are looked through; deployments have hundreds"""


async def add_entity(
    registry: Registry,
    passwords: Passwords,
    entity_id: str,
    members: Mapping[str, object],
    *,
    actor: Actor,
    dry_run: bool = False,
) -> ApplyResult:
    """Add an entity.

    `members` as in a directory file. Raises Refused, access.Forbidden, StoreUnavailable. R-12.4
    """
    _, prepared = await prepare_addition(registry, passwords, Entity, "entities", entity_id, members)
    return await carry_out(registry, prepared, actor=actor, verbs=ADDS, dry_run=dry_run)


async def update_entity(
    registry: Registry,
    passwords: Passwords,
    entity_id: str,
    members: Mapping[str, object],
    *,
    actor: Actor,
    was: Entity | None = None,
    dry_run: bool = False,
) -> ApplyResult:
    """Change members of an entity.

    `members` as in a directory file, None for those that keep their value; `was` is the entity that this was decided
    on. Raises Refused with every fault, if there is no such entity or no member is named, access.Forbidden, Conflict,
    StoreUnavailable. Source: R-12.4, docs/directory.md
    """
    await find_entity(registry, entity_id, actor=actor)
    if all(value is None for value in members.values()):
        raise Refused("nothing was named to change: `corpid entity update --help` lists what can be")
    prepared = await prepare_entry(registry, passwords, "entities", entity_id, members)
    return await carry_out(registry, prepared, actor=actor, verbs=CHANGES, dry_run=dry_run, was=was)


async def switch_entity(
    registry: Registry, entity_id: str, *, enabled: bool, actor: Actor, dry_run: bool = False
) -> ApplyResult:
    """Enable or disable an entity, and everybody acting for it.

    Raises Refused if it does not exist or nothing would change, access.Forbidden, StoreUnavailable. Source: D50
    """
    found = await find_entity(registry, entity_id, actor=actor)
    becomes = switch_record(found, phrase("entity {name}", name=entity_id), enabled=enabled)
    change = Change(found, becomes)
    return await write_one_change(registry, change, actor=actor, dry_run=dry_run)


async def update_service(
    registry: Registry,
    passwords: Passwords,
    service_id: str,
    members: Mapping[str, object],
    *,
    actor: Actor,
    was: Service | None = None,
) -> ApplyResult:
    """Change members of a service.

    `members` as in a directory file, None for those that keep their value; `was` is the service that this was decided
    on. Raises Refused with every fault, or if there is no such service, access.Forbidden, Conflict, StoreUnavailable.
    Source: R-14.1, docs/directory.md
    """
    await find_service(registry, service_id, actor=actor)
    prepared = await prepare_entry(registry, passwords, "services", service_id, members)
    return await carry_out(registry, prepared, actor=actor, verbs=CHANGES, dry_run=False, was=was)


async def list_clients_of_service(registry: Registry, service_id: str, *, actor: Actor) -> tuple[list[Client], bool]:
    """Clients that use a service, by identifier.

    Of the first 2,000 clients; and whether there are others to look at. Raises access.Forbidden, StoreUnavailable.
    Source: R-20, D53
    """
    authorise(actor, "read", Object(kind="client"))
    found: list[Client] = []
    first = ""
    for _ in range(_MOST // _AT_ONCE):
        part = await registry.clients.named(first=first, until=LAST, limit=_AT_ONCE)
        found += [each for each in part if service_id in each.services]
        if len(part) < _AT_ONCE:
            return found, False
        first = part[-1].client_id + "\x01"
    return found, True
