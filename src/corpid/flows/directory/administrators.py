"""Acting administrators, facts for access rules, and guards of changes.

What was decided on is looked at again in the transaction of the change, so that a right which ends meanwhile gives
nothing.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.flows.large import in_thread_if_many, in_turns
from corpid.rules.directory.access import Forbidden, Object
from corpid.rules.directory.actors import (
    ApiClient,
    DeploymentOperator,
    DirectoryFile,
    EntityAdministrator,
    Person,
    ProvisioningToken,
)
from corpid.rules.directory.approvals import OF_ENTITIES, approvers, change_needs_approval, ends_approval
from corpid.rules.directory.changes import LastOwnerInvariant, Precondition
from corpid.rules.directory.invitations import CARRIED, is_invitation, is_redirection
from corpid.rules.directory.records import (
    Administrator,
    Entity,
    Membership,
    Operator,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from corpid.rules.directory.access import Level
    from corpid.rules.directory.actors import Actor
    from corpid.rules.directory.changes import Change as StoreChange
    from corpid.rules.directory.current import Key
    from corpid.rules.directory.plan import Change
    from corpid.rules.directory.records import AppointmentStatus
    from corpid.stores.sql.registry import Registry

MOST_GRANTS: Final = 1000
"""of one entity to one third party for one service, that a row is compared with"""
ENDED: Final = phrase("you no longer administer this entity")
NO_OPERATOR_ANY_MORE: Final = phrase("you no longer operate this deployment")
SHARED: Final = phrase("somebody else administers this entity by now: open the page again")


async def acting_administrator(
    registry: Registry,
    user_id: str,
    entity_id: str,
    *,
    auth_time: float,
    now: float,
    request: str = "",
    address: str = "",
) -> EntityAdministrator:
    """Return a person as the administrator of the entity chosen at sign-in.

    `request` and `address` are those of the request, for the audit.

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
        request=request,
        address=address,
    )


async def acting_operator(
    registry: Registry, user_id: str, *, auth_time: float, now: float, request: str = "", address: str = ""
) -> DeploymentOperator:
    """Return a person as an operator of the deployment.

    `auth_time` and `now` are in epoch seconds, `request` and `address` for the audit. Raises access.Forbidden if the
    person is none, or is gone or disabled, and StoreUnavailable. Source: D50, D53, D54
    """
    found = await _operator(registry, user_id)
    if found is None:
        raise Forbidden(Person(user_id), "read", "operator", NO_OPERATOR_ANY_MORE)
    return DeploymentOperator(
        user_id=user_id, level=found[1].level, auth_time=auth_time, now=now, request=request, address=address
    )


async def _operator(registry: Registry, user_id: str) -> tuple[User, Operator] | None:
    """An operator who can act, with their person."""
    key = (user_id,)
    user = (await registry.directory.read(User, [key])).get(key)
    held = (await registry.directory.read(Operator, [key])).get(key)
    return None if user is None or held is None or not user.enabled else (user, held)


async def add_facts(
    registry: Registry, actor: Actor, changes: Sequence[Change], objects: Sequence[Object]
) -> tuple[list[Object], list[StoreChange]]:
    """Return the objects with their facts, and guards of the write.

    An operator's command or file needs no facts. Raises access.Forbidden if an administrator is none any more, and
    StoreUnavailable. Source: D53, D54, D56, D60
    """
    covering = await _covering_grants(registry, changes)
    guards: list[StoreChange] = [*remaining(changes), *_rested_on(actor, changes, covering)]
    guards += await still_acting(registry, actor)
    guards += await _invitations(registry, changes)
    if not isinstance(actor, EntityAdministrator | DeploymentOperator | ApiClient | ProvisioningToken):
        return list(objects), guards
    found = []
    async for change, each in in_turns(zip(changes, objects, strict=True)):
        thing = replace(
            each,
            covered=covering.get(change.key) is not None,
            ends_approval=ends_approval(change),
            moves_address=_moves_address(change),
        )
        fact, further = await _with_facts(registry, change, thing)
        found.append(fact)
        guards += further
    if isinstance(actor, DeploymentOperator):
        guards = [guard for guard in guards if not isinstance(guard, LastOwnerInvariant) or not guard.entity_id]
    return found, await in_thread_if_many(lambda: list(dict.fromkeys(guards)), len(guards))


async def needing_approval(
    registry: Registry, actor: Actor, changes: Sequence[Change], objects: Sequence[Object]
) -> tuple[list[Change], list[Precondition]]:
    """Return the changes that entities want approved, and guards of that.

    If the actor is an administrator, whose entity that is follows from the actor, else from each change. Raises
    StoreUnavailable. Source: D55
    """
    acting_for = getattr(actor, "entity_id", "")
    asked = [
        (change, thing, (acting_for or thing.entity_id,), (thing.service_id,))
        for change, thing in zip(changes, objects, strict=True)
        if change.kind in OF_ENTITIES and (change.was is not None or change.kind != "entity")
    ]
    entities = await registry.directory.read(Entity, {entity for _, _, entity, _ in asked if entity[0]})
    services = await registry.directory.read(Service, {service for _, _, _, service in asked if service[0]})
    found = [
        change
        for change, thing, entity, service in asked
        if change_needs_approval(change, thing.level or "", entities.get(entity), services.get(service))
    ]
    guards = [
        *(Precondition(Entity, key, record) for key, record in entities.items()),
        *(Precondition(Service, key, record) for key, record in services.items()),
    ]
    return found, guards


async def _covering_grants(registry: Registry, changes: Sequence[Change]) -> dict[Key, ThirdPartyGrant]:
    """Return accepted grants by the key of a role that each covers.

    The roles are those of third parties' people among the changes. A grant among the changes counts as what it becomes.
    """
    rows = [change.becomes for change in changes if isinstance(change.becomes, ThirdPartyAssignment)]
    if not rows:
        return {}
    written = {change.key for change in changes if change.kind == "grant"}
    held: defaultdict[Key, list[ThirdPartyGrant]] = defaultdict(list)
    for change in changes:
        if isinstance(change.becomes, ThirdPartyGrant):
            held[change.key[:3]].append(change.becomes)
    for between in dict.fromkeys((row.client_entity_id, row.entity_id, row.service_id) for row in rows):
        where = dict(zip(("client_entity_id", "entity_id", "service_id"), between, strict=True))
        page = await registry.directory.page(ThirdPartyGrant, where, after=("",) * 6, limit=MOST_GRANTS)
        held[between] += [grant for grant in page if grant.key not in written]
    covering = ((row, held[row.client_entity_id, row.entity_id, row.service_id]) for row in rows)
    return {row.key: grant for row, grants in covering for grant in grants if grant.covers(row)}


def _rested_on(
    actor: Actor, changes: Sequence[Change], covering: Mapping[Key, ThirdPartyGrant]
) -> Iterable[Precondition]:
    """Return the grants that must still be as they were read.

    A file says what a grant becomes, whatever it was.
    """
    written = {change.key for change in changes if change.kind == "grant"}
    for change in changes:
        if isinstance(change.was, ThirdPartyGrant) and (change.becomes is None or not isinstance(actor, DirectoryFile)):
            yield Precondition(ThirdPartyGrant, change.key, change.was)
    yield from dict.fromkeys(
        Precondition(ThirdPartyGrant, grant.key, grant) for grant in covering.values() if grant.key not in written
    )


def remaining(changes: Iterable[Change]) -> list[LastOwnerInvariant]:
    """Return who must remain after changes by any actor.

    An operator of the deployment, if the changes take one. Source: D53
    """
    return [LastOwnerInvariant()] if any(_takes_operator(change) for change in changes) else []


async def entities_without_owner(registry: Registry, user_id: str) -> list[str]:
    """Return the entities whose only owner who can act is this person.

    Raises StoreUnavailable. Source: D54
    """
    return [
        held.entity_id
        for held in await registry.directory.administered(user_id)
        if held.level == "owner" and not await _other_owners(registry, held.key)
    ]


async def still_acting(registry: Registry, actor: Actor) -> list[Precondition]:
    """Return the records that a person's right rests on, as they are.

    None for an actor who is no administrator and no operator. Raises access.Forbidden if the right has ended,
    StoreUnavailable. Source: D53, D54
    """
    if isinstance(actor, EntityAdministrator):
        return await _still_administering(registry, actor)
    if not isinstance(actor, DeploymentOperator):
        return []
    found = await _operator(registry, actor.user_id)
    if found is None or found[1].level != actor.level:
        raise Forbidden(actor, "write", "operator", NO_OPERATOR_ANY_MORE)
    user, held = found
    return [Precondition(User, user.key, user), Precondition(Operator, held.key, held)]


async def _still_administering(registry: Registry, actor: EntityAdministrator) -> list[Precondition]:
    acting = await registry.directory.acting(actor.user_id, actor.entity_id)
    held = acting.administrator if acting is not None and acting.allowed else None
    if acting is None or held is None or (held.level, held.services) != (actor.level, actor.services):
        raise Forbidden(actor, "write", "administrator", ENDED)
    if actor.alone and len(await registry.directory.administrators(actor.entity_id)) > 1:
        raise Forbidden(actor, "write", "administrator", SHARED)
    return [
        Precondition(User, acting.user.key, acting.user),
        Precondition(Entity, acting.entity.key, acting.entity),
        Precondition(Membership, acting.membership.key, acting.membership),
        Precondition(Administrator, held.key, held),
    ]


async def _invitations(registry: Registry, changes: Sequence[Change]) -> list[Precondition]:
    """Return the invitations of the people whose level or roles change.

    They are for whom the invitation goes to: another address meanwhile, and nothing is written (D68). Nobody is looked
    up whose membership is among the changes as a new one.
    """
    added = {change.key for change in changes if change.kind == "membership" and change.was is None}
    people = {change.key[:2] for change in changes if isinstance(change.becomes or change.was, CARRIED)}
    held = await registry.directory.read(Membership, sorted(people - added))
    return [Precondition(Membership, key, each) for key, each in held.items() if each.invited]


async def _with_facts(registry: Registry, change: Change, thing: Object) -> tuple[Object, list[StoreChange]]:
    """Return an object with its facts, and guards of them."""
    if not thing.user_id:
        return thing, []
    key = (thing.user_id, thing.entity_id)
    owned = await _ownership_taken(registry, change, key)
    held = (await registry.directory.read(Administrator, [key])).get(key)
    level: Level = held.level if held is not None else ""
    operates = await registry.directory.read(Operator, [(thing.user_id,)])
    belongs = await registry.directory.read(Membership, [key])
    with_facts = replace(
        thing,
        level=level,
        becomes=change.becomes.level if isinstance(change.becomes, Administrator) else "",
        belongs=bool(belongs),
        invites=is_invitation(change.was, change.becomes)
        and not await registry.directory.read(User, [(thing.user_id,)]),
        operates=bool(operates),
        parameters=await _has_parameters(registry, change, thing),
        takes_last_owner=not all([await _other_owners(registry, each) for each in owned]),
    )
    return with_facts, [
        Precondition(Administrator, key, held),
        *(LastOwnerInvariant(entity_id) for _, entity_id in owned),
    ]


async def _ownership_taken(registry: Registry, change: Change, key: tuple[str, str]) -> list[tuple[str, str]]:
    """Return person and entity of each ownership that would rest."""
    user_id, entity_id = key
    held = await registry.directory.administered(user_id)
    owned = [(user_id, each.entity_id) for each in held if each.level == "owner"]
    if _disables(change):
        return owned
    return [each for each in owned if each[1] == entity_id] if _takes_owner(change) else []


async def _has_parameters(registry: Registry, change: Change, thing: Object) -> bool:
    """Return whether a row has parameters, or its service defines some."""
    if getattr(change.becomes or change.was, "parameters", ()):
        return True
    found = await registry.directory.read(Service, [(thing.service_id,)]) if thing.service_id else {}
    return any(service.parameters for service in found.values())


async def _other_owners(registry: Registry, key: tuple[str, ...]) -> bool:
    return has_owner_beside(key, await registry.directory.administrators(key[1]))


def has_owner_beside(key: tuple[str, ...], administrators: Iterable[AppointmentStatus[Administrator]]) -> bool:
    """Return whether another administrator is an owner who can act.

    `key` is person and entity. Source: D54
    """
    return any(each.enabled and each.record.level == "owner" and each.record.key != key for each in administrators)


def _moves_address(change: Change) -> bool:
    """Return whether links for recovery, or an invitation, would go elsewhere (D60, D61)."""
    was, becomes = change.was, change.becomes
    if is_redirection(was, becomes):
        return True
    return isinstance(was, User) and isinstance(becomes, User) and was.email != becomes.email


def _takes_owner(change: Change) -> bool:
    if change.kind == "administrator":
        return not isinstance(change.becomes, Administrator) or change.becomes.level != "owner"
    return change.kind == "membership" and not getattr(change.becomes, "enabled", False)


def _takes_operator(change: Change) -> bool:
    was, becomes = change.was, change.becomes
    if isinstance(was, Operator):
        return was.level == "operator" and getattr(becomes, "level", "") != "operator"
    return _disables(change)


def _disables(change: Change) -> bool:
    """Return whether a person is disabled or removed."""
    was = change.was
    return isinstance(was, User) and was.enabled and not getattr(change.becomes, "enabled", False)
