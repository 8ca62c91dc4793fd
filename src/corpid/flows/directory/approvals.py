"""Change requests: made, approved, declined, withdrawn and expired (D55).

`submit` is for actors of entities: it writes what needs no approval, and requests the rest.
"""

from __future__ import annotations

from collections import defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from corpid.flows.directory.administrators import MOST_GRANTS, acting_administrator
from corpid.flows.directory.api_clients import acting_api_client
from corpid.flows.directory.lists import ListPage, cut_page, place
from corpid.flows.directory.person_names import NameChanges, as_requested, name_changes, names_digest, people_of
from corpid.flows.directory.write import (
    AuthorisedChanges,
    Refused,
    authorise_changes,
    is_of_entity,
    object_of,
    record_changes,
    with_reason,
)
from corpid.rules.audit_actions import AuditAction
from corpid.rules.audit_records import AuditEvent
from corpid.rules.directory.access import Forbidden, Object, authorise
from corpid.rules.directory.actors import SYSTEM, ApiClient, ProvisioningToken
from corpid.rules.directory.approvals import (
    MOST_CHANGES,
    MOST_REASON_CHARACTERS,
    REDIRECTED,
    ApprovalEvent,
    ApprovalState,
    RequestClosed,
    change_of,
    decide_request,
    is_asked_for_oneself,
    refresh_change,
    stale,
    state_at,
    to_requested_change,
    unfit,
)
from corpid.rules.directory.changes import ChangedMeanwhile, MemberNameTaken, Precondition, Upsert
from corpid.rules.directory.current import Current
from corpid.rules.directory.differences import Difference, difference
from corpid.rules.directory.names import is_storable
from corpid.rules.directory.plan import RECORDS
from corpid.rules.directory.records import (
    Administrator,
    ChangeRequest,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from corpid.rules.directory.actors import Actor, EntityAdministrator
    from corpid.rules.directory.changes import Change as StoreChange
    from corpid.rules.directory.current import Key
    from corpid.rules.directory.plan import Change
    from corpid.rules.directory.sections import Kind
    from corpid.stores.sql.registry import Registry

_ACTIONS: Final = {
    ApprovalEvent.APPROVE: AuditAction.APPROVAL_APPROVE,
    ApprovalEvent.DECLINE: AuditAction.APPROVAL_DECLINE,
    ApprovalEvent.WITHDRAW: AuditAction.APPROVAL_WITHDRAW,
    ApprovalEvent.EXPIRE: AuditAction.APPROVAL_EXPIRE,
}
_NAMES_CHANGED: Final = phrase("names have changed since this was requested: look at it again before you approve")
_EXPIRED_AT_ONCE: Final = 100
_GONE: Final = "there is no such request: `corpid approval list` shows those that wait"


class NoRequest(Refused):
    """There is no such request."""


class StaleRequest(Refused):
    """The records that a request changes differ by now.

    Further texts name them.
    """


class NamesChanged(Refused):
    """People of a request have other names than the approver was shown.

    Further texts say which.
    """


class AlreadyDecided(Refused):
    """The request was decided before, or has expired."""


class NoReason(Refused):
    """A request or a decision without its reason."""


class RequestSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A request with its changes in words and its present state."""

    request: ChangeRequest
    state: str
    """one of RequestState"""
    requester: str
    """what identifies a person, with their name; else as the audit names the actor"""
    differences: tuple[Difference, ...]
    names: NameChanges
    """how names differ from when it was made (D68)"""


async def submit(
    registry: Registry,
    actor: Actor,
    changes: Sequence[Change],
    *,
    reason: str,
    now: float,
    unique: str,
    seen: Sequence[Precondition] = (),
) -> ChangeRequest | None:
    """Write changes, or request them if one of them needs approval.

    Returns the request, None if the changes were written. `reason` is for the approver, `now` in epoch
    seconds; `unique` makes the identifier of a request, with the moment; `seen` as in `write`. Raises access.Forbidden
    (also for provisioning tokens, which request nothing), Refused, Conflict, StoreUnavailable. Source: D55, D59, D60
    """
    found = await authorise_changes(registry, actor, changes)
    if not is_of_entity(actor) or not found.needing:
        await registry.directory.write([*record_changes(found), *(each for each in seen if each not in found.guards)])
        return None
    if isinstance(actor, ProvisioningToken):
        raise Forbidden(actor, "write", found.needing[0].kind, phrase("this is read-only here: it needs approval"))
    check_reason(reason)
    request = ChangeRequest(
        request_id=f"{int(now):08x}-{unique}",
        entity_id=_entity_of(found),
        requester=actor.name,
        bound_to=actor.entity_id if isinstance(actor, ApiClient) else "",
        changes=tuple(map(to_requested_change, changes)),
        reason=reason,
        created_at=int(now),
        people=await people_of(registry, _entity_of(found), changes, actor.name),
    )
    event = _event(actor, AuditAction.APPROVAL_REQUEST, request)
    guards = dict.fromkeys(
        [*found.guards, *_as_requested(changes), *seen, Precondition(ChangeRequest, request.key, None)]
    )
    await registry.directory.write([*guards, Upsert(request, event)])
    return request


def _entity_of(found: AuthorisedChanges) -> str:
    """The entity whose administrators decide."""
    if len(found.changes) > MOST_CHANGES:
        raise Refused(phrase("a request for approval has at most {count} changes: make several", count=MOST_CHANGES))
    concerned = {getattr(found.actor, "entity_id", "") or thing.entity_id for thing in found.objects}
    if len(concerned) != 1 or not all(concerned):
        raise Refused(phrase("some of this needs approval: send the changes of each entity on their own"))
    return concerned.pop()


def check_reason(reason: str) -> None:
    """Refuse a reason that is empty or too long. Raises Refused. Source: D55"""
    if not reason.strip():
        raise NoReason("reason: say why, for the approver")
    if len(reason) > MOST_REASON_CHARACTERS or not reason.isprintable():
        raise Refused(phrase("reason: write one line of at most {count} characters", count=MOST_REASON_CHARACTERS))


async def approve(
    registry: Registry, request_id: str, *, actor: Actor, reason: str, now: float, names: str = ""
) -> ChangeRequest:
    """Approve a request and make its change.

    Both in one transaction. Requester and approver both need the right to it now. `reason` is the approver's,
    `names` the digest of the names that they were shown (empty: those of the request). Raises Refused if it was decided
    before, what it changes is no longer as it was, or breaks a rule by now, NamesChanged, access.Forbidden, Conflict,
    StoreUnavailable. Source: D55, D68
    """
    request = await _decidable(registry, request_id, actor, reason)
    after = _after(request, ApprovalEvent.APPROVE, actor, reason, now)
    changes = [change_of(each) for each in request.changes]
    are_now = await name_changes(registry, request)
    if are_now.redirected:
        raise StaleRequest(REDIRECTED)
    if are_now.digest != (names or names_digest(request.people)):
        raise NamesChanged(_NAMES_CHANGED, *(f"  {was} → {is_now}" for was, is_now in are_now.changed))
    current = await _current(registry, changes)
    changes = [refresh_change(each, current, now=now) for each in changes]
    gone = stale(changes, current)
    if gone:
        named = await _user_names(registry, gone)
        lines = (f"  {difference(each, named).subject}" for each in gone)
        raise StaleRequest("this was changed since it was requested, and has to be requested again:", *lines)
    problems = unfit(changes, Current(records=current), await _user_names(registry, changes))
    if problems:
        raise Refused("the rules no longer allow this:", *(f"  {problem}" for problem in problems))
    agreed = await authorise_changes(registry, actor, changes, approving=request_id)
    if is_asked_for_oneself(request):
        still = await _still_belonging(registry, request)
        done = record_changes(
            msgspec.structs.replace(agreed, needing=()), approval=request.request_id, requested_by=request.requester
        )
    else:
        asked, still = await _asked(registry, request, changes, now)
        done = record_changes(asked, approval=request.request_id, approved_by=actor.name)
    rests_on = [
        *still,
        *(Precondition(Service, key, record) for key, record in current.get("service", {}).items()),  # type: ignore[arg-type]
        *_as_requested(changes),
    ]
    await _decide(registry, request, after, ApprovalEvent.APPROVE, actor, [*done, *agreed.guards, *rests_on])
    return after


def _as_requested(changes: Iterable[Change]) -> Iterable[Precondition]:
    """Guards that the changed records are unchanged."""
    for change in changes:
        yield Precondition(RECORDS[change.kind], change.key, change.was)  # type: ignore[arg-type]


async def _still_belonging(registry: Registry, request: ChangeRequest) -> list[Precondition]:
    """Guards that the requester still acts for the entity (D50)."""
    _, _, user_id = request.requester.partition(":")
    acting = await registry.directory.acting(user_id, request.entity_id)
    if acting is None or not acting.allowed:
        raise Refused(phrase("the requester no longer acts for this entity: decline it"))
    return [
        Precondition(User, acting.user.key, acting.user),
        Precondition(Membership, acting.membership.key, acting.membership),
    ]


async def _asked(
    registry: Registry, request: ChangeRequest, changes: Sequence[Change], now: float
) -> tuple[AuthorisedChanges, list[Precondition]]:
    """Authorise the requester, as if signed in at this moment.

    A client of the API has what it may ask for now. Also returns guards of that.
    """
    kind, _, identifier = request.requester.partition(":")
    try:
        if kind == "user":
            person = await acting_administrator(registry, identifier, request.entity_id, auth_time=now, now=now)
            return await authorise_changes(registry, person, changes, approving=request.request_id), []
        found = await acting_api_client(registry, identifier) if kind == "client" else None
        if found is None or found[0].entity_id != request.bound_to:
            raise Refused(phrase("the requester has no rights here any more: decline it"))
        client, still = found
        return await authorise_changes(registry, client, changes, approving=request.request_id), [still]
    except Forbidden as error:
        raise Refused(phrase("the requester may not do this any more: {reason}", reason=error.reason)) from None


async def unfitting(registry: Registry, changes: Sequence[Change]) -> list[str]:
    """Return why changes break a rule, a sentence each.

    Asked before they are made or requested. Raises StoreUnavailable. Source: D55, R-14, R-21
    """
    current = await _current(registry, changes)
    return unfit(changes, Current(records=current), await _user_names(registry, changes))


async def decline(registry: Registry, request_id: str, *, actor: Actor, reason: str, now: float) -> ChangeRequest:
    """Decline a request; nothing else changes.

    Raises Refused if it was decided before, access.Forbidden, Conflict, StoreUnavailable. Source: D55
    """
    request = await _decidable(registry, request_id, actor, reason)
    after = _after(request, ApprovalEvent.DECLINE, actor, reason, now)
    await _decide(registry, request, after, ApprovalEvent.DECLINE, actor, [])
    return after


async def withdraw(registry: Registry, request_id: str, *, actor: Actor, reason: str, now: float) -> ChangeRequest:
    """Take back one's own request; it needs no `reason`.

    Raises Refused if it was decided before, access.Forbidden, Conflict, StoreUnavailable. Source: D55
    """
    request = await _found(registry, request_id)
    authorise(
        actor, "write", Object(kind="withdrawal") if request is None else object_of_request(request, "withdrawal")
    )
    if request is None:
        raise NoRequest(_GONE)
    if reason:
        check_reason(reason)
    after = _after(request, ApprovalEvent.WITHDRAW, actor, reason, now)
    await _decide(registry, request, after, ApprovalEvent.WITHDRAW, actor, [])
    return after


async def expire(registry: Registry, *, now: float) -> int:
    """End requests that waited for 14 days; return how many.

    A hundred at most: called again and again, it ends all. Raises StoreUnavailable. Source: D55
    """
    oldest = await registry.directory.page(ChangeRequest, {"state": "pending"}, after=("",), limit=_EXPIRED_AT_ONCE)
    ended = 0
    for request in oldest:
        if state_at(request, now) is not ApprovalState.EXPIRED:
            break
        after = decide_request(request, ApprovalEvent.EXPIRE, by=SYSTEM, reason="", now=now)
        event = AuditEvent(
            actor=SYSTEM, action=AuditAction.APPROVAL_EXPIRE, object=request.request_id, entity_id=request.entity_id
        )
        try:
            await registry.directory.write([Precondition(ChangeRequest, request.key, request), Upsert(after, event)])
        except ChangedMeanwhile:  # another process did it, or somebody decided at the last moment
            continue
        ended += 1
    return ended


async def requests(
    registry: Registry, actor: Actor, *, entity_id: str, state: str, now: float, after: str, limit: int
) -> ListPage[RequestSummary]:
    """List requests, the oldest first.

    `entity_id` and `state` narrow the list unless they are empty. Raises Refused, access.Forbidden, StoreUnavailable.
    Source: D55
    """
    authorise(actor, "read", Object(kind="approval", entity_id=entity_id))
    found = await _listed(registry, entity_id, state, after=place(after, 1), limit=limit + 1)
    page = cut_page(found, limit, [request.request_id for request in found])
    return ListPage(
        found=tuple([await summarise_request(registry, request, now) for request in page.found]), after=page.after
    )


async def _listed(
    registry: Registry, entity_id: str, state: str, *, after: tuple[str, ...], limit: int
) -> list[ChangeRequest]:
    """Requests in the order of their identifiers.

    An entity's are indexed by their state: a page of each has those of a page of all.
    """
    if not entity_id:
        where = {"state": state} if state else {}
        return await registry.directory.page(ChangeRequest, where, after=after, limit=limit)
    found: list[ChangeRequest] = []
    for each in (state,) if state else [each.value for each in ApprovalState]:
        where = {"entity_id": entity_id, "state": each}
        found += await registry.directory.page(ChangeRequest, where, after=after, limit=limit)
    return sorted(found, key=attrgetter("request_id"))[:limit]


async def request(registry: Registry, actor: Actor, request_id: str, *, now: float) -> RequestSummary:
    """Return one request.

    Raises Refused if there is none, access.Forbidden, StoreUnavailable. Source: D55
    """
    found = await _request(registry, request_id, actor)
    return await summarise_request(registry, found, now)


async def summarise_request(registry: Registry, found: ChangeRequest, now: float) -> RequestSummary:
    """A request as people read it. Raises StoreUnavailable. Source: D55"""
    changes = [change_of(each) for each in found.changes]
    names = await name_changes(registry, found)
    _, _, identifier = found.requester.partition(":")
    state = state_at(found, now)
    people = names.people if state is ApprovalState.PENDING else {**names.people, **as_requested(found)}
    return RequestSummary(
        request=found,
        state=state.value,
        requester=names.people.get(identifier, found.requester),
        differences=tuple(difference(change, people) for change in changes),
        names=names,
    )


async def _request(registry: Registry, request_id: str, actor: Actor) -> ChangeRequest:
    """Find a request.

    Of another entity's an entity learns as much as of none.
    """
    found = await _found(registry, request_id)
    authorise(actor, "read", Object(kind="approval") if found is None else object_of_request(found, "approval"))
    if found is None:
        raise NoRequest(_GONE)
    return found


async def _found(registry: Registry, request_id: str) -> ChangeRequest | None:
    key = (request_id,)
    return (await registry.directory.read(ChangeRequest, [key])).get(key) if is_storable(request_id) else None


async def _decidable(registry: Registry, request_id: str, actor: Actor, reason: str) -> ChangeRequest:
    found = await _request(registry, request_id, actor)
    authorise(actor, "write", object_of_request(found, "approval"))
    with_reason(actor)
    check_reason(reason)
    return found


def object_of_request(found: ChangeRequest, kind: Literal["approval", "withdrawal"]) -> Object:
    """Return a request as an object of access. Source: D53, D55"""
    services = {object_of(change_of(each)).service_id for each in found.changes}
    return Object(
        kind=kind,
        entity_id=found.entity_id,
        service_id=services.pop() if len(services) == 1 else "",
        requester=found.requester,
    )


def _after(found: ChangeRequest, event: ApprovalEvent, actor: Actor, reason: str, now: float) -> ChangeRequest:
    try:
        return decide_request(found, event, by=actor.name, reason=reason, now=now)
    except RequestClosed as error:
        raise AlreadyDecided(str(error)) from None


async def _decide(
    registry: Registry,
    found: ChangeRequest,
    after: ChangeRequest,
    event: ApprovalEvent,
    actor: Actor,
    changes: Iterable[StoreChange],
) -> None:
    """Write a decision, if the request is still as it was."""
    written = Upsert(after, _event(actor, _ACTIONS[event], found))
    try:
        await registry.directory.write([*changes, Precondition(ChangeRequest, found.key, found), written])
    except MemberNameTaken:
        raise Refused(phrase("another member has this user name by now: decline the request")) from None


def _event(actor: Actor, action: AuditAction, found: ChangeRequest) -> AuditEvent:
    return AuditEvent(
        actor=actor.name, action=action, object=found.request_id, entity_id=found.entity_id, detail=actor.detail
    )


async def _current(registry: Registry, changes: Sequence[Change]) -> dict[Kind, dict[Key, msgspec.Struct]]:
    """Read the changed records, and those that they name."""
    keys: defaultdict[Kind, set[Key]] = defaultdict(set)
    between: set[Key] = set()
    for change in changes:
        keys[change.kind].add(change.key)
        record = change.becomes or change.was
        user_id, entity_id, client_id, service_id = (
            str(getattr(record, name, "")) for name in ("user_id", "entity_id", "client_entity_id", "service_id")
        )
        keys["entity"] |= {(each,) for each in (entity_id, client_id) if each}
        keys["service"] |= {(service_id,)} if service_id else set()
        keys["membership"] |= {(user_id, entity_id)} if user_id else set()
        if isinstance(record, Administrator) and isinstance(record.services, tuple):
            keys["service"] |= {(each,) for each in record.services}
        if isinstance(record, ThirdPartyAssignment):
            between.add((client_id, entity_id, service_id))
    found: dict[Kind, dict[Key, msgspec.Struct]] = {}
    for kind, wanted in keys.items():
        found[kind] = dict(await registry.directory.read(RECORDS[kind], sorted(wanted)))  # type: ignore[type-var]
    for each in between:
        where = dict(zip(("client_entity_id", "entity_id", "service_id"), each, strict=True))
        grants = await registry.directory.page(ThirdPartyGrant, where, after=("",) * 6, limit=MOST_GRANTS)
        found.setdefault("grant", {}).update({grant.key: grant for grant in grants})
    return found


async def _user_names(registry: Registry, changes: Iterable[Change]) -> dict[str, str]:
    ids = {str(getattr(change.becomes or change.was, "user_id", "")) for change in changes}
    users = await registry.directory.read(User, sorted((each,) for each in ids if each))
    return {user.user_id: user.user_name for user in users.values()}


def decidable(found: ChangeRequest, actor: EntityAdministrator) -> bool:
    """Return whether a request waits for this administrator.

    A sign-in that is too old does not matter. Source: D53, D55
    """
    recent = msgspec.structs.replace(actor, auth_time=actor.now)
    try:
        authorise(recent, "write", object_of_request(found, "approval"))
    except Forbidden:
        return False
    return state_at(found, actor.now) is ApprovalState.PENDING
