"""A person's own entities and roles, and requests for more (D53, D55, D61, D65).

Each request is a change request, which administrators decide on in `approvals`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from corpid.flows import namespaces
from corpid.flows.directory import approvals
from corpid.flows.directory.lists import Belonging, load_belongings, load_roles
from corpid.flows.directory.person_names import read_names
from corpid.flows.directory.role_assignment import MOST_SERVICES
from corpid.flows.directory.write import RequestDetails, check_reason, write_changes
from corpid.rules.audit import AuditAction, AuditQuery
from corpid.rules.directory.access import Object, Person, authorise
from corpid.rules.directory.access_texts import name_actor
from corpid.rules.directory.approvals import is_asked_for_oneself, state_at
from corpid.rules.directory.lists import SERVICES
from corpid.rules.directory.memberships import shown_name
from corpid.rules.directory.records import (
    Assignment,
    Change,
    ChangeRequest,
    Entity,
    Membership,
    RequestComment,
    Service,
    ThirdPartyAssignment,
    User,
)
from corpid.rules.directory.role_forms import is_open_to
from corpid.rules.directory.roles import RoleRecords
from corpid.rules.limits import ACCESS_REQUESTS_PER_DAY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpid.flows.request_context import RequestContext
    from corpid.stores.sql.registry import Registry

MOST: Final = 200
"""memberships of a person, and roles of each sort, that are shown"""
GivenBy: TypeAlias = Literal["operator", "program", "person", "you", ""]
_SHOWN: Final = 20
"""the latest requests of a person"""


class Giver(msgspec.Struct, frozen=True, kw_only=True):
    """The giver of a role: its last writer."""

    kind: GivenBy
    """empty: not known"""
    name: str = ""
    """of a person who belongs to the same entity"""


class OwnRole(msgspec.Struct, frozen=True, kw_only=True):
    role: RoleRecords
    giver: Giver


class OwnEntity(Belonging, frozen=True, kw_only=True):
    """An entity that the reader belongs to."""

    roles: tuple[OwnRole, ...]


class TooManyAsked(Exception):
    """The person has asked too often today."""


class AlreadyAsked(Exception):
    """The person waits for the same role."""


class AlreadyHeld(Exception):
    """The person has this role."""


class OwnRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A person's request for access of their own."""

    request: ChangeRequest
    state: str
    """one of RequestState"""
    row: Assignment
    service: Service
    entity: Entity
    comments: tuple[tuple[RequestComment, str], ...] = ()
    """each with its author, as the entity knows them"""


async def list_own_access(registry: Registry, user_id: str) -> list[OwnEntity]:
    """The entities and roles of a person, by name of the entity.

    Invitations are left out, until they are accepted. Raises StoreUnavailable. Source: D53, D60, D65
    """
    for kind in ("membership", "administrator", "assignment", "third-party row"):
        authorise(Person(user_id), "read", Object(kind=kind, user_id=user_id))
    directory = registry.directory
    where = {"user_id": user_id}
    held = await directory.page(Membership, where, limit=MOST)
    held = [each for each in held if not each.invited]
    belongings = await load_belongings(directory, held)
    own = await directory.page(Assignment, where, limit=MOST)
    others = await directory.page(ThirdPartyAssignment, where, limit=MOST)
    roles = await load_roles(directory, [*own, *others])
    givers = await _find_givers(registry, user_id, roles)
    found = [
        OwnEntity(
            **msgspec.structs.asdict(each),
            roles=tuple(
                OwnRole(role=role, giver=giver)
                for role, giver in zip(roles, givers, strict=True)
                if role.row.entity_id == each.entity.entity_id
            ),
        )
        for each in belongings
    ]
    return sorted(found, key=lambda each: (each.entity.name.casefold(), each.entity.entity_id))


async def list_requestable_entities(context: RequestContext, user_id: str) -> list[Entity]:
    """The entities for which a person can ask, by name.

    Raises StoreUnavailable. Source: D50, D55
    """
    authorise(Person(user_id), "read", Object(kind="membership", user_id=user_id))
    directory = context.provider.registry.directory
    held = await directory.page(Membership, {"user_id": user_id}, limit=MOST)
    live = [(each.entity_id,) for each in held if each.enabled and not each.invited]
    found = [each for each in (await directory.read(Entity, live)).values() if each.enabled]
    return sorted(found, key=lambda each: (each.name.casefold(), each.entity_id))


async def has_no_approver(context: RequestContext, user_id: str, entity: Entity, service: Service) -> bool:
    """Return whether an entity lacks others who decide at a service.

    Raises access.Forbidden if they do not act for the entity, StoreUnavailable. Source: D53, D55
    """
    await _check_acting(context, user_id, entity.entity_id)
    held = await context.provider.registry.directory.administrators(entity.entity_id)
    others = [each.record for each in held if each.enabled and each.record.user_id != user_id]
    return not any(each.approves or each.serves(service.service_id) for each in others)


async def list_requestable_services(context: RequestContext, user_id: str, entity: Entity) -> list[Service]:
    """Services with roles that a person can ask for.

    By name. Raises access.Forbidden if they do not act for the entity, StoreUnavailable. Source: D55, R-20
    """
    await _check_acting(context, user_id, entity.entity_id)
    found = await context.provider.registry.lists.find(SERVICES, limit=MOST_SERVICES)
    return sorted((each for each in found if is_open_to(each, entity)), key=lambda each: each.name.casefold())


async def request_access(context: RequestContext, row: Assignment, *, reason: str) -> ChangeRequest:
    """Request a role for the person whom it is for.

    Raises AlreadyHeld, AlreadyAsked, TooManyAsked, Refused without a reason or if it breaks a rule, access.Forbidden,
    Conflict, StoreUnavailable. Source: D55
    """
    registry, user_id = context.provider.registry, row.user_id
    await _check_acting(context, user_id, row.entity_id)
    check_reason(reason)
    was = await registry.directory.find(Assignment, *row.key)
    if was is not None and was.end_date >= context.today:
        raise AlreadyHeld
    if any(each.state == "pending" and each.row.key == row.key for each in await list_requests(context, user_id)):
        raise AlreadyAsked

    async def count() -> None:
        counter = namespaces.ACCESS_REQUESTS.entry(context.provider.policy.deployment_url, user_id)
        async with context.provider.transient.batch(context.now) as batch:
            if await context.counts.count(batch, counter) > ACCESS_REQUESTS_PER_DAY:
                raise TooManyAsked

    person = Person(user_id)
    asking = RequestDetails(
        reason, context.now, context.provider.new_id(), context.event(person, AuditAction.APPROVAL_REQUEST)
    )
    request = await write_changes(registry, person, [Change(was, row)], asking=asking, once_checked=count)
    assert request is not None  # noqa: S101 - it always needs approval
    return request


async def list_requests(context: RequestContext, user_id: str) -> list[OwnRequest]:
    """The latest requests of a person for their own access.

    The latest first. Raises StoreUnavailable. Source: D55
    """
    person, registry = Person(user_id), context.provider.registry
    authorise(person, "read", Object(kind="access request", user_id=user_id))
    query = AuditQuery(actor=person.name, actions=(AuditAction.APPROVAL_REQUEST,))
    entries = await registry.audit.latest(query, limit=_SHOWN)
    found = await registry.directory.read(ChangeRequest, [(each.object,) for each in entries])
    own = [each for each in found.values() if each.requester == person.name and is_asked_for_oneself(each)]
    rows = {each.request_id: each.changes[0].after for each in own}
    wanted = [row for row in rows.values() if isinstance(row, Assignment)]
    known = await registry.directory.read(Service, {(row.service_id,) for row in wanted})
    entity_of = await registry.directory.read(Entity, {(row.entity_id,) for row in wanted})
    listed = []
    for each in sorted(own, key=lambda each: each.request_id, reverse=True):
        row = rows[each.request_id]
        if isinstance(row, Assignment) and (row.service_id,) in known and (row.entity_id,) in entity_of:
            listed.append(
                OwnRequest(
                    comments=await _name_comments(registry, each),
                    request=each, state=state_at(each, context.now).value, row=row,
                    service=known[row.service_id,], entity=entity_of[row.entity_id,],
                )
            )  # fmt: skip
    return listed


async def _name_comments(registry: Registry, request: ChangeRequest) -> tuple[tuple[RequestComment, str], ...]:
    """The comments on a request, each with its author."""
    if not request.comments:
        return ()
    authors = {each.author.partition(":")[2] for each in request.comments}
    names = await read_names(registry, request.entity_id, (), former=authors)
    return tuple((each, name_actor(each.author, names)) for each in request.comments)


async def withdraw_request(context: RequestContext, user_id: str, request_id: str) -> None:
    """Withdraw one of the person's own requests.

    Raises approvals.NoRequest if it is none of theirs, Refused if it was decided before, Conflict, StoreUnavailable.
    Source: D55
    """
    if request_id not in {each.request.request_id for each in await list_requests(context, user_id)}:
        raise approvals.NoRequest("there is no such request")
    registry = context.provider.registry
    await approvals.withdraw_request(registry, request_id, actor=Person(user_id), reason="", now=context.now)


async def _find_givers(registry: Registry, user_id: str, roles: Iterable[RoleRecords]) -> list[Giver]:
    """The giver of each role, by its source (D65).

    Only people who belong to the same entity have names (D61).
    """
    directory = registry.directory
    rows = [role.row for role in roles]
    sources: dict[tuple[str, ...], str] = {}
    for record in (Assignment, ThirdPartyAssignment):
        keys = [row.key for row in rows if isinstance(row, record)]
        sources |= {key: each.sources.record for key, each in (await directory.sourced(record, keys)).items()}
    writers = [(row.entity_id, *sources.get(row.key, "").partition(":")[::2]) for row in rows]
    people = {(identifier, entity_id) for entity_id, kind, identifier in writers if kind == "user"}
    belonging = await directory.read(Membership, people)
    users = await directory.read(User, {(person,) for person, _ in people})
    givers = []
    for entity_id, kind, identifier in writers:
        held, user = belonging.get((identifier, entity_id)), users.get((identifier,))
        if kind == "user" and identifier == user_id:
            givers.append(Giver(kind="you"))
        elif kind == "user":
            name = shown_name(held, user) if held is not None and user is not None and not held.invited else ""
            givers.append(Giver(kind="person", name=name))
        elif kind in {"operator", "command", "file"}:
            givers.append(Giver(kind="operator"))
        else:
            givers.append(Giver(kind="program" if kind in {"client", "token"} else ""))
    return givers


async def _check_acting(context: RequestContext, user_id: str, entity_id: str) -> None:
    """Raise access.Forbidden for a person who does not act for the entity."""
    acting = await context.provider.registry.directory.acting(user_id, entity_id)
    belongs = acting is not None and acting.allowed
    thing = Object(kind="access request", entity_id=entity_id, user_id=user_id, belongs=belongs)
    authorise(Person(user_id), "write", thing)
