"""An organisation as the console shows it (D53)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.flows.directory.finding import entity_named
from corpid.flows.directory.lists import Appointment, ListFilter, ListPage, administrators, grants
from corpid.flows.directory.people_facts import authorise_list, visible
from corpid.rules.directory.access import Object
from corpid.rules.directory.queries import MemberQuery, StoredMember
from corpid.rules.directory.records import Entity, ThirdPartyGrant

if TYPE_CHECKING:
    from corpid.rules.directory.actors import DeploymentOperator
    from corpid.stores.sql.registry import Registry


class EntityDetails(msgspec.Struct, frozen=True, kw_only=True):
    """An entity with a page of administrators and third parties each."""

    entity: Entity
    people: int
    has_owner: bool
    """whether one of its owners can act"""
    administrators: ListPage[Appointment]
    third_parties: ListPage[ThirdPartyGrant]
    clients: ListPage[ThirdPartyGrant]
    """grants by which it is a third party"""
    names: dict[str, str]
    """entity identifier → name, of the other sides"""


async def shown_entity(
    registry: Registry, entity_id: str, *, actor: DeploymentOperator, limit: int, few: int
) -> EntityDetails:
    """An entity with at most `limit` administrators and `few` grants a side.

    Raises Refused if there is none, access.Forbidden, StoreUnavailable. Source: D53, D56
    """
    entity = await entity_named(registry, entity_id, actor=actor)
    held = await administrators(registry, actor, ListFilter(entity=entity_id), after="", limit=limit)
    given = await grants(registry, actor, ListFilter(client_entity=entity_id), after="", limit=few)
    received = await grants(registry, actor, ListFilter(entity=entity_id), after="", limit=few)
    sides = {each.entity_id for each in given.found} | {each.client_entity_id for each in received.found}
    names = await registry.directory.read(Entity, [(each,) for each in sides])
    authorise_list(actor, Object(kind="membership", entity_id=entity_id))
    people, _ = await registry.provisioning.members(MemberQuery(entity_id=entity_id, limit=0))
    everybody = await registry.directory.administrators(entity_id)
    return EntityDetails(
        entity=entity,
        people=people,
        has_owner=any(each.enabled and each.record.level == "owner" for each in everybody),
        administrators=held,
        third_parties=given,
        clients=received,
        names={key[0]: each.name for key, each in names.items()},
    )


async def open_invitation(
    registry: Registry, entity_id: str, membership_id: str, *, actor: DeploymentOperator
) -> StoredMember | None:
    """An invitation of an entity that is not accepted.

    None if there is none. Raises access.Forbidden, StoreUnavailable. Source: D53, D60
    """
    thing = Object(kind="membership", entity_id=entity_id)
    authorise_list(actor, thing)
    found = await registry.provisioning.member(membership_id)
    if found is None or found.membership.entity_id != entity_id or not found.membership.invited:
        return None
    seen = await visible(registry, actor, thing, [found], lambda each: each.user.user_id)
    return seen[0] if seen else None
