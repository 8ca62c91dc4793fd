"""The console: operators, and an organisation or a person as shown (D53, D54)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec.structs import replace

from corpid.flows.account.own_sessions import SelfServiceRequest
from corpid.flows.directory import people
from corpid.flows.directory.actors import load_operator
from corpid.flows.directory.lists import (
    Appointment,
    Belonging,
    ListPage,
    authorise_list,
    authorise_on_person,
    find_entity,
    list_records,
    list_with_records,
)
from corpid.rules.authentication.records import PersonFactors, Session
from corpid.rules.authentication.throttling import CodeGuesses
from corpid.rules.directory.access import Action, DeploymentOperator, Forbidden, Object, ObjectKind, authorise
from corpid.rules.directory.lists import ADMINISTRATORS, ASSIGNMENTS, GRANTS, MEMBERSHIPS
from corpid.rules.directory.memberships import Member, MemberQuery
from corpid.rules.directory.records import Entity, Operator, OperatorLevel, Service, ThirdPartyGrant, User
from corpid.rules.directory.roles import RoleRecords
from corpid.rules.oauth import acr

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.request_context import RequestContext
    from corpid.stores.sql.registry import Registry

PersonAction: TypeAlias = Literal["unlock", "send_link", "send_invitation", "renew", "end_sessions", "switch"]
RIGHTS: Final[Mapping[PersonAction, tuple[Action, ObjectKind]]] = {
    "unlock": ("delete", "lock"),
    "send_link": ("write", "link"),
    "send_invitation": ("write", "invitation"),
    "renew": ("write", "credentials"),
    "end_sessions": ("delete", "session"),
    "switch": ("write", "user"),
}
"""what can be done to a person, as it is authorised; `renew` removes every factor"""


class NeedsPasskey(Exception):
    """Operators sign in with a passkey here, and this one did not."""


@dataclass(frozen=True, kw_only=True)
class ConsoleRequest(SelfServiceRequest):
    actor: DeploymentOperator


async def admit_operator(
    context: RequestContext, request: SelfServiceRequest, *, needs_passkey: bool
) -> ConsoleRequest:
    """The person as an operator.

    Raises access.Forbidden if they are none, NeedsPasskey, StoreUnavailable. Source: D50, D53
    """
    session = request.session
    actor = await load_operator(
        context.provider.registry, request.user.user_id, auth_time=session.auth_time, now=context.now
    )
    actor = replace(actor, request_id=context.request_id, address=context.address)
    if needs_passkey and tuple(session.amr) not in acr.BY_PASSKEY:
        raise NeedsPasskey
    return ConsoleRequest(user=request.user, browser=request.browser, session=session, actor=actor)


def is_allowed(actor: DeploymentOperator, action: Action, kind: ObjectKind, *, operates: bool = False) -> bool:
    """Return whether an operator may do this after a recent sign-in.

    `operates`: whether the person it is about is an operator. For what is offered on a page: each change asks again.
    Source: D53, D54
    """
    somebody = Object(kind=kind, user_id="?", operates=operates)
    try:
        authorise(replace(actor, auth_time=actor.now), action, somebody)
    except Forbidden:
        return False
    return True


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
    without_roles: frozenset[str]
    """the services of these grants that have no roles"""


async def load_entity(
    registry: Registry, entity_id: str, *, actor: DeploymentOperator, limit: int, few: int
) -> EntityDetails:
    """An entity with at most `limit` administrators and `few` grants a side.

    Raises Refused if there is none, access.Forbidden, StoreUnavailable. Source: D53, D56
    """
    entity = await find_entity(registry, entity_id, actor=actor)
    held = await list_with_records(registry, actor, ADMINISTRATORS, {"entity": entity_id}, limit=limit)
    given = await list_records(registry, actor, GRANTS, {"client_entity_id": entity_id}, limit=few)
    received = await list_records(registry, actor, GRANTS, {"entity_id": entity_id}, limit=few)
    sides = {each.entity_id for each in given.found} | {each.client_entity_id for each in received.found}
    names = await registry.directory.read(Entity, [(each,) for each in sides])
    keys = {(each.service_id,) for each in (*given.found, *received.found)}
    services = await registry.directory.read(Service, sorted(keys))
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
        names={key[0]: each.name_for(entity_id) for key, each in names.items()},
        without_roles=frozenset(each.service_id for each in services.values() if not each.roles),
    )


async def find_open_invitation(
    registry: Registry, entity_id: str, membership_id: str, *, actor: DeploymentOperator
) -> Member | None:
    """An invitation of an entity that is not accepted.

    None if there is none. Raises access.Forbidden, StoreUnavailable. Source: D53, D60
    """
    thing = Object(kind="membership", entity_id=entity_id)
    authorise_list(actor, thing)
    found = await registry.provisioning.member(membership_id)
    if found is None or found.membership.entity_id != entity_id or not found.membership.invited:
        return None
    await authorise_on_person(registry, actor, "read", replace(thing, user_id=found.user.user_id))
    return found


class PersonDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A person, what they hold, and what the actor may do."""

    user: User
    factors: PersonFactors
    operator: OperatorLevel | Literal[""]
    """their level as an operator of the deployment, if any"""
    invited_until: int
    """when a link to set up their sign-in ends, in epoch seconds; 0: they have none"""
    memberships: ListPage[Belonging]
    roles: ListPage[RoleRecords]
    sessions: tuple[Session, ...]
    locks: tuple[CodeGuesses, ...]
    actions: frozenset[PersonAction]
    """with a recent sign-in"""


async def find_user(registry: Registry, user_id: str, *, actor: DeploymentOperator) -> User | None:
    """A person by identifier, None if there is none.

    Raises access.Forbidden, StoreUnavailable. Source: D53
    """
    found = await registry.directory.user(user_id)
    if found is not None:
        await authorise_on_person(registry, actor, "read", Object(kind="user", user_id=user_id))
    return found


async def load_person(
    registry: Registry, user: User, *, actor: DeploymentOperator, limit: int, now: float
) -> PersonDetails:
    """A person with what they hold, at most `limit` of each sort.

    `now` is in epoch seconds. Raises access.Forbidden, StoreUnavailable. Source: D53
    """
    name = user.user_name
    _, held = await people.load_factors(registry, name, actor=actor)
    operators = await registry.directory.read(Operator, [user.key])
    links = await registry.factors.links_of(user.user_id)
    _, live = await people.list_sessions(registry, name, actor=actor, now=now)
    _, paused = await people.list_locks(registry, name, actor=actor, now=now)
    return PersonDetails(
        user=user,
        factors=held,
        operator=operators[user.key].level if user.key in operators else "",
        invited_until=max(
            (each.expires_at for each in links if each.purpose == "invitation" and each.expires_at > now), default=0
        ),
        memberships=await list_with_records(registry, actor, MEMBERSHIPS, {"user": name}, limit=limit),
        roles=await list_with_records(registry, actor, ASSIGNMENTS, {"user": name}, limit=limit),
        sessions=tuple(live[:limit]),
        locks=tuple(paused),
        actions=frozenset(
            each for each in get_args(PersonAction) if is_allowed(actor, *RIGHTS[each], operates=bool(operators))
        ),
    )
