"""Actors as they may act now, and guards of that.

A right that ends before a change is written gives nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.rules.directory.access import (
    Action,
    Actor,
    ApiClient,
    DeploymentOperator,
    EntityAdministrator,
    Forbidden,
    Object,
    Person,
    authorise,
)
from corpid.rules.directory.approvals import approvers
from corpid.rules.directory.records import (
    ActingPerson,
    Administrator,
    AppointmentStatus,
    Entity,
    Membership,
    Operator,
    Precondition,
    User,
)
from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpid.stores.sql.registry import Registry

ENDED: Final = phrase("you no longer administer this entity")
NO_OPERATOR_ANY_MORE: Final = phrase("you no longer operate this deployment")
SHARED: Final = phrase("the administrators of this entity have changed: open the page again")


async def load_administrator(
    registry: Registry, user_id: str, entity_id: str, *, auth_time: float, now: float
) -> EntityAdministrator:
    """Return a person as the administrator of the entity chosen at sign-in.

    Raises access.Forbidden if the person has no level there, or person, entity or membership is gone or disabled, and
    StoreUnavailable. Source: D50, D54
    """
    acting = await registry.directory.acting(user_id, entity_id)
    if acting is None or acting.administrator is None or not acting.allowed:
        raise Forbidden(Person(user_id), "read", "administrator", ENDED)
    held = acting.administrator
    administrators = await registry.directory.administrators(entity_id)
    return EntityAdministrator(
        user_id=user_id,
        entity_id=entity_id,
        level=held.level,
        services=held.services,
        alone=len(administrators) == 1,
        only_approver=not approvers(each for each in administrators if each.record.user_id != user_id),
        auth_time=auth_time,
        now=now,
    )


async def load_operator(registry: Registry, user_id: str, *, auth_time: float, now: float) -> DeploymentOperator:
    """Return a person as an operator of the deployment.

    `auth_time` and `now` are in epoch seconds. Raises access.Forbidden if the person is none, or is gone or disabled,
    and StoreUnavailable. Source: D50, D53, D54
    """
    found = await _find_operator(registry, user_id)
    if found is None:
        raise Forbidden(Person(user_id), "read", "operator", NO_OPERATOR_ANY_MORE)
    return DeploymentOperator(user_id=user_id, level=found[1].level, auth_time=auth_time, now=now)


async def list_entities_without_owner(registry: Registry, user_id: str) -> list[str]:
    """Return the entities whose only owner who can act is this person.

    Raises StoreUnavailable. Source: D54
    """
    return [
        held.entity_id
        for held in await registry.directory.administered(user_id)
        if held.level == "owner" and is_last_owner(held, await registry.directory.administrators(held.entity_id))
    ]


def is_allowed(actor: Actor, action: Action, thing: Object) -> bool:
    """Return whether an actor may do something with an object. Source: D53"""
    try:
        authorise(actor, action, thing)
    except Forbidden:
        return False
    return True


def assume_recent(actor: EntityAdministrator) -> EntityAdministrator:
    """An administrator as if signed in at this moment. Source: D54"""
    return replace(actor, auth_time=actor.now)


async def check_still_acting(registry: Registry, actor: Actor) -> list[Precondition]:
    """Return the records that a person's right rests on, as they are.

    None for an actor who is no administrator and no operator. Raises access.Forbidden if the right has ended,
    StoreUnavailable. Source: D53, D54
    """
    if isinstance(actor, EntityAdministrator):
        acting = await registry.directory.acting(actor.user_id, actor.entity_id)
        held = acting.administrator if acting is not None and acting.allowed else None
        if acting is None or held is None or (held.level, held.services) != (actor.level, actor.services):
            raise Forbidden(actor, "write", "administrator", ENDED)
        if actor.alone and len(await registry.directory.administrators(actor.entity_id)) > 1:
            raise Forbidden(actor, "write", "administrator", SHARED)
        entity = Precondition(Entity, acting.entity.key, acting.entity)
        return [*guard_acting(acting), entity, Precondition(Administrator, held.key, held)]
    if not isinstance(actor, DeploymentOperator):
        return []
    found = await _find_operator(registry, actor.user_id)
    if found is None or found[1].level != actor.level:
        raise Forbidden(actor, "write", "operator", NO_OPERATOR_ANY_MORE)
    user, operator = found
    return [Precondition(User, user.key, user), Precondition(Operator, operator.key, operator)]


def guard_acting(acting: ActingPerson) -> list[Precondition]:
    """Guards that somebody still acts for an entity. Source: D50"""
    user, membership = acting.user, acting.membership
    return [Precondition(User, user.key, user), Precondition(Membership, membership.key, membership)]


def is_last_owner(held: Administrator, administrators: Iterable[AppointmentStatus[Administrator]]) -> bool:
    """Return whether somebody is the only owner who can act. Source: D54"""
    return held.level == "owner" and not any(
        each.enabled and each.record.level == "owner" and each.record.key != held.key for each in administrators
    )


async def load_api_client(registry: Registry, client_id: str) -> tuple[ApiClient, Precondition] | None:
    """Return a client of the API as it may act now.

    It has every scope that it may ask for; with a guard of that. None if it is gone or disabled, or the entity that it
    is bound to is. Raises StoreUnavailable. Source: D50, D55, D59
    """
    client = await registry.api_clients.get(client_id)
    if client is None or not client.enabled:
        return None
    entity = await registry.directory.find(Entity, client.entity_id) if client.entity_id else None
    if client.entity_id and (entity is None or not entity.enabled):
        return None
    actor = ApiClient(client_id=client_id, scopes=frozenset(client.scopes), entity_id=client.entity_id)
    return actor, Precondition(RegisteredApiClient, client.key, client)


async def _find_operator(registry: Registry, user_id: str) -> tuple[User, Operator] | None:
    """An operator who can act, with their person."""
    user, held = await registry.directory.find(User, user_id), await registry.directory.find(Operator, user_id)
    return None if user is None or held is None or not user.enabled else (user, held)
