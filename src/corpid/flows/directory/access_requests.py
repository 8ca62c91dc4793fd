"""Requests of people for access of their own: made, listed, withdrawn (D55).

Each is a change request, which administrators decide on in `approvals`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import namespaces
from corpid.flows.directory import approvals
from corpid.flows.directory.person_names import people_of
from corpid.flows.directory.role_assignment import MOST_SERVICES, find_stored_role, plan_role
from corpid.flows.directory.write import Refused
from corpid.rules.audit_actions import AuditAction
from corpid.rules.audit_records import AuditQuery
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.actors import Person
from corpid.rules.directory.approvals import change_of, is_asked_for_oneself, state_at, to_requested_change
from corpid.rules.directory.changes import Precondition, Upsert
from corpid.rules.directory.records import Assignment, ChangeRequest, Entity, Membership, Service, User
from corpid.rules.directory.role_forms import is_open_to
from corpid.rules.limits import ACCESS_REQUESTS_PER_DAY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.records import ActingPerson

_SHOWN: Final = 20
"""the latest requests of a person"""
_MOST_MEMBERSHIPS: Final = 200


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


async def entities(context: RequestContext, user_id: str) -> list[Entity]:
    """The entities for which a person can ask, by name.

    Raises StoreUnavailable. Source: D50, D55
    """
    authorise(Person(user_id), "read", Object(kind="membership", user_id=user_id))
    directory = context.provider.registry.directory
    held = await directory.page(Membership, {"user_id": user_id}, after=("", ""), limit=_MOST_MEMBERSHIPS)
    live = [(each.entity_id,) for each in held if each.enabled and not each.invited]
    found = [each for each in (await directory.read(Entity, live)).values() if each.enabled]
    return sorted(found, key=lambda each: (each.name.casefold(), each.entity_id))


async def nobody_decides(context: RequestContext, user_id: str, entity: Entity, service: Service) -> bool:
    """Return whether an entity lacks others who decide at a service.

    Raises access.Forbidden if they do not act for the entity, StoreUnavailable. Source: D53, D55
    """
    await _acting(context, user_id, entity.entity_id)
    held = await context.provider.registry.directory.administrators(entity.entity_id)
    others = [each.record for each in held if each.enabled and each.record.user_id != user_id]
    return not any(each.approves or each.serves(service.service_id) for each in others)


async def services(context: RequestContext, user_id: str, entity: Entity) -> list[Service]:
    """Services with roles that a person can ask for.

    By name. Raises access.Forbidden if they do not act for the entity, StoreUnavailable. Source: D55, R-20
    """
    await _acting(context, user_id, entity.entity_id)
    found = await context.provider.registry.directory.named(Service, first="", until="\U0010ffff", limit=MOST_SERVICES)
    return sorted((each for each in found if is_open_to(each, entity)), key=lambda each: each.name.casefold())


async def ask(context: RequestContext, row: Assignment, *, reason: str) -> ChangeRequest:
    """Request a role for the person whom it is for.

    Raises AlreadyHeld, AlreadyAsked, TooManyAsked, Refused without a reason or if it breaks a rule, access.Forbidden,
    Conflict, StoreUnavailable. Source: D55
    """
    registry, user_id = context.provider.registry, row.user_id
    acting = await _acting(context, user_id, row.entity_id)
    approvals.check_reason(reason)
    was = await find_stored_role(registry, row)
    if was is not None and was.end_date >= context.today:
        raise AlreadyHeld
    if any(each.state == "pending" and each.row.key == row.key for each in await list_requests(context, user_id)):
        raise AlreadyAsked
    changes = [plan_role(was, row)]
    problems = await approvals.unfitting(registry, changes)
    if problems:
        raise Refused("the rules do not allow this:", *(f"  {problem}" for problem in problems))
    await _count(context, user_id)
    request = ChangeRequest(
        request_id=f"{int(context.now):08x}-{context.provider.new_id()}",
        entity_id=row.entity_id,
        requester=Person(user_id).name,
        changes=tuple(map(to_requested_change, changes)),
        reason=reason,
        created_at=int(context.now),
        people=await people_of(registry, row.entity_id, changes, Person(user_id).name),
    )
    event = context.event(
        Person(user_id), AuditAction.APPROVAL_REQUEST, subject=request.request_id, entity_id=row.entity_id
    )
    guards = [
        Precondition(User, acting.user.key, acting.user),
        Precondition(Membership, acting.membership.key, acting.membership),
        Precondition(Assignment, row.key, was),
        Precondition(ChangeRequest, request.key, None),
    ]
    await registry.directory.write([*guards, Upsert(request, event)])
    return request


async def _acting(context: RequestContext, user_id: str, entity_id: str) -> ActingPerson:
    """The person at the entity.

    Raises access.Forbidden if they do not act for it.
    """
    acting = await context.provider.registry.directory.acting(user_id, entity_id)
    belongs = acting is not None and acting.allowed
    thing = Object(kind="access request", entity_id=entity_id, user_id=user_id, belongs=belongs)
    authorise(Person(user_id), "write", thing)
    assert acting is not None  # noqa: S101 - nobody belongs otherwise
    return acting


async def _count(context: RequestContext, user_id: str) -> None:
    counter = namespaces.ACCESS_REQUESTS.entry(context.provider.policy.deployment_url, user_id)
    async with context.provider.transient.batch(context.now) as batch:
        counted = await context.counts.count(batch, counter)
    if counted > ACCESS_REQUESTS_PER_DAY:
        raise TooManyAsked


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
    return await _described(context, sorted(own, key=lambda each: each.request_id, reverse=True))


async def _described(context: RequestContext, own: Sequence[ChangeRequest]) -> list[OwnRequest]:
    directory = context.provider.registry.directory
    rows = {each.request_id: change_of(each.changes[0]).becomes for each in own}
    wanted = [row for row in rows.values() if isinstance(row, Assignment)]
    known = await directory.read(Service, {(row.service_id,) for row in wanted})
    entity_of = await directory.read(Entity, {(row.entity_id,) for row in wanted})
    found = []
    for each in own:
        row = rows[each.request_id]
        if isinstance(row, Assignment) and (row.service_id,) in known and (row.entity_id,) in entity_of:
            found.append(
                OwnRequest(
                    request=each, state=state_at(each, context.now).value, row=row,
                    service=known[row.service_id,], entity=entity_of[row.entity_id,],
                )
            )  # fmt: skip
    return found


async def withdraw(context: RequestContext, user_id: str, request_id: str) -> None:
    """Withdraw one of the person's own requests.

    Raises approvals.NoRequest if it is none of theirs, Refused if it was decided before, Conflict, StoreUnavailable.
    Source: D55
    """
    if request_id not in {each.request.request_id for each in await list_requests(context, user_id)}:
        raise approvals.NoRequest("there is no such request")
    registry = context.provider.registry
    await approvals.withdraw(registry, request_id, actor=Person(user_id), reason="", now=context.now)
