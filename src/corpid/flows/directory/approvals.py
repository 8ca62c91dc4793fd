"""Change requests: listed, approved, declined, withdrawn and expired (D55).

They are made by `write.write_changes`, and by people for access of their own (`own_access`). For commands and API a
request is a `RequestSummary`; for the administrators of its entity a `Request`, with what they can do about it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from corpid.flows.directory.actors import assume_recent, guard_acting, is_allowed, load_administrator, load_api_client
from corpid.flows.directory.lists import ListPage, cut_page, format_place, parse_place, search_page
from corpid.flows.directory.person_names import (
    NameChanges,
    compare_names,
    name_actors,
    read_names,
    read_requested_names,
)
from corpid.flows.directory.write import (
    ApprovedRequest,
    IdentifierConflict,
    Refused,
    authorise_changes,
    build_object,
    build_request_event,
    check_reason,
    guard_records,
    plan_endings,
    read_current,
    require_reason,
    write_changes,
)
from corpid.rules.audit import COMMENT, AuditAction, AuditEvent
from corpid.rules.directory.access import SYSTEM, Actor, EntityAdministrator, Forbidden, Object, authorise
from corpid.rules.directory.access_texts import RequestNames, name_actor
from corpid.rules.directory.approvals import (
    LIFETIME_SECONDS,
    MOST_COMMENTS,
    MOST_REASON_CHARACTERS,
    REDIRECTED,
    ApprovalEvent,
    ApprovalState,
    RequestClosed,
    add_comment,
    approvers,
    decide_request,
    is_asked_for_oneself,
    is_one_line,
    refresh_change,
    stale,
    state_at,
    step,
)
from corpid.rules.directory.differences import Difference, difference
from corpid.rules.directory.lists import LAST, REQUESTS
from corpid.rules.directory.memberships import placeholder, shown_name
from corpid.rules.directory.names import is_storable
from corpid.rules.directory.plan import APPROVERS
from corpid.rules.directory.records import (
    Administrator,
    Approvals,
    Change,
    ChangedMeanwhile,
    ChangeRequest,
    Entity,
    MemberNameTaken,
    Membership,
    Precondition,
    RequestComment,
    Service,
)
from corpid.texts import Phrase, phrase

if TYPE_CHECKING:
    from corpid.rules.fields import KeyedRecord
    from corpid.stores.sql.registry import Registry

_NAMES_CHANGED: Final = phrase("names have changed since this was requested: look at it again before you approve")
_PEOPLE_GONE: Final = phrase("the invitation was accepted, or somebody has left: make a new request")
_GONE: Final = "there is no such request: `corpid approval list` shows those that wait"
ENDED: Final = (ApprovalState.APPROVED, ApprovalState.DECLINED, ApprovalState.WITHDRAWN, ApprovalState.EXPIRED)
_AT_ONCE: Final = 100
_MOST_LOOKED_THROUGH: Final = 500
_APPROVERS_NAMED: Final = 6
_NO_SUCH_REQUEST: Final = "there is no such request"
_NO_NAMES: Final[Mapping[str, str]] = {}


class ChangesWithNames(msgspec.Struct, frozen=True, kw_only=True):
    changes: Mapping[str, tuple[Change, ...]]
    """by the identifier of the request"""
    names: Mapping[str, RequestNames]
    """by the identifier of the request; people as they were when it was made"""


NO_CHANGES: Final = ChangesWithNames(changes={}, names={})


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


class RequestSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A request with its changes in words and its present state."""

    request: ChangeRequest
    state: str
    """one of RequestState"""
    requester: str
    """as `name_actors` has it"""
    decided_by: str
    """likewise; empty while it waits"""
    differences: tuple[Difference, ...]
    names: NameChanges
    """how names differ from when it was made (D68)"""
    comments: tuple[tuple[RequestComment, str], ...] = ()
    """each with its author, as `name_actors` has it; the earliest first"""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request as an administrator sees it."""

    record: ChangeRequest
    state: ApprovalState
    changes: tuple[Change, ...]
    names: RequestNames
    requester: str
    """as `name_actor` has it"""
    decided_by: str
    comments: tuple[tuple[RequestComment, str], ...] = ()
    """each with its author, as `name_actor` has it; the earliest first"""
    own: bool
    why_not: str
    """why this administrator cannot decide on it, a sentence; empty if they can"""
    approvers: tuple[str, ...] = ()
    """names of administrators who can approve it, six at most; in a list, of those who can decide on it"""
    why_no_approval: str = ""
    """why they can only decline it, a sentence; empty if they can approve it. Of a request on its own"""
    nobody_approves: bool = False
    """whether no administrator can approve it at present. Of a request on its own"""
    name_changes: NameChanges | None = None
    """how names differ from when it was made (D68); of a request that waits, on its own"""

    @property
    def can_withdraw(self) -> bool:
        """True if this administrator can take it back."""
        return self.own and self.state is ApprovalState.PENDING

    @property
    def expires_at(self) -> int:
        """When it ends without a decision, in epoch seconds."""
        return self.record.created_at + LIFETIME_SECONDS


class RequestedRemovals:
    """The records that waiting requests would remove.

    One that has changed since, or was made again with the same key, is not among them (D68).
    """

    def __init__(self, records: Iterable[KeyedRecord]) -> None:
        self._records: Final = frozenset(map(_without_sending, records))

    def __contains__(self, record: KeyedRecord) -> bool:
        return _without_sending(record) in self._records


def _without_sending(record: KeyedRecord) -> KeyedRecord:
    """The record as if its invitation had never been sent."""
    return msgspec.structs.replace(record, invitation_sent_at=0) if isinstance(record, Membership) else record


async def approve_request(
    registry: Registry, request_id: str, *, actor: Actor, reason: str, now: float, names: str = ""
) -> ChangeRequest:
    """Approve a request and make its change.

    Both in one transaction. Requester and approver both need the right to it now. `reason` is the approver's, or empty,
    `names` the digest of the names that they were shown (empty: those of the request). Raises Refused if it was decided
    before, what it changes is no longer as it was, or breaks a rule by now, NamesChanged, access.Forbidden, Conflict,
    StoreUnavailable. Source: D55, D68
    """
    request = await _find_decidable(registry, request_id, actor, ApprovalEvent.APPROVE, reason)
    after = _decide_request(request, ApprovalEvent.APPROVE, actor, reason, now)
    changes: Sequence[Change] = request.changes
    are_now = await compare_names(registry, request)
    if (stale_reason := _explain_stale(are_now)) is not None:
        raise StaleRequest(stale_reason)
    if are_now.digest != names if names else are_now.changed:
        raise NamesChanged(_NAMES_CHANGED, *(f"  {was} → {is_now}" for was, is_now in are_now.changed))
    current = await read_current(registry, changes)
    changes = [refresh_change(each, current, now=now) for each in changes]
    gone = stale(changes, current)
    if gone:
        lines = (f"  {difference(each, are_now.people).subject}" for each in gone)
        raise StaleRequest("this was changed since it was requested, and has to be requested again:", *lines)
    named = {(each.kind, each.key) for each in changes}
    further = [
        each
        for change in changes
        for each in await plan_endings(registry, change)
        if (each.kind, each.key) not in named
    ]
    if further:
        lines = (f"  {difference(each, are_now.people).subject}" for each in further)
        raise StaleRequest("this would end as well, which the request does not name; request it again:", *lines)
    agreed = await authorise_changes(registry, actor, changes, approving=request_id)
    detail = {"approval": request.request_id}
    if is_asked_for_oneself(request):
        acting = await registry.directory.acting(request.requester.partition(":")[2], request.entity_id)
        if acting is None or not acting.allowed:
            raise Refused(phrase("the requester no longer acts for this entity: decline it"))
        maker, still = actor, guard_acting(acting)
        detail["requested_by"] = request.requester
    else:
        maker, still = await _load_requester(registry, request, now)
        detail["approved_by"] = actor.name
    approved = ApprovedRequest(
        before=request, after=after, event=_build_event(request, ApprovalEvent.APPROVE, actor), detail=detail,
        current=current,
    )  # fmt: skip
    seen = [*still, *agreed.guards, *(Precondition(Service, *each) for each in current.get("service", {}).items())]
    try:
        await write_changes(registry, maker, changes, asking=approved, seen=seen)
    except Forbidden as error:
        raise Refused(
            phrase("the requester no longer has permission for this: {reason}", reason=error.reason)
        ) from None
    except (MemberNameTaken, IdentifierConflict):
        raise Refused(phrase("another member now has this user name: decline the request")) from None
    return after


def _explain_stale(names: NameChanges) -> Phrase | None:
    """The reason that a request can only be declined.

    None if its people are still the same.
    """
    if names.redirected:
        return REDIRECTED
    return _PEOPLE_GONE if names.gone else None


async def decline_request(
    registry: Registry, request_id: str, *, actor: Actor, reason: str, now: float
) -> ChangeRequest:
    """Decline a request; nothing else changes.

    Raises Refused if it was decided before, access.Forbidden, Conflict, StoreUnavailable. Source: D55
    """
    request = await _find_decidable(registry, request_id, actor, ApprovalEvent.DECLINE, reason)
    after = _decide_request(request, ApprovalEvent.DECLINE, actor, reason, now)
    return await _write_decision(registry, request, after, ApprovalEvent.DECLINE, actor)


async def withdraw_request(
    registry: Registry, request_id: str, *, actor: Actor, reason: str, now: float
) -> ChangeRequest:
    """Take back one's own request; it needs no `reason`.

    Raises Refused if it was decided before, access.Forbidden, Conflict, StoreUnavailable. Source: D55
    """
    request = _require_write(actor, await _find(registry, request_id), "withdrawal")
    if reason:
        check_reason(reason)
    after = _decide_request(request, ApprovalEvent.WITHDRAW, actor, reason, now)
    return await _write_decision(registry, request, after, ApprovalEvent.WITHDRAW, actor)


async def comment_on_request(
    registry: Registry, request_id: str, *, actor: Actor, text: str, now: float
) -> ChangeRequest:
    """Add a comment to a request that waits.

    The requester and those who may decide can. `now` is in epoch seconds. Raises Refused if it is empty or too long, the
    request has too many or was decided, access.Forbidden, Conflict, StoreUnavailable. Source: D55
    """
    found = await _find(registry, request_id)
    own = found is not None and _is_own(found, actor)
    found = _require_write(actor, found, "withdrawal" if own else "approval")
    if not is_one_line(text):
        raise Refused(f"comment: one line of at most {MOST_REASON_CHARACTERS} characters")
    try:
        after = add_comment(found, by=actor.name, text=text.strip(), now=now)
    except RequestClosed as error:
        raise AlreadyDecided(str(error)) from None
    if len(after.comments) > MOST_COMMENTS:
        raise Refused(phrase("comment: a request has at most {count} comments", count=MOST_COMMENTS))
    detail = {**actor.detail, COMMENT: str(len(after.comments))}
    event = build_request_event(AuditAction.APPROVAL_COMMENT, found, by=actor.name, detail=detail)
    await _replace_request(registry, found, after, event)
    return after


def list_actors(found: ChangeRequest) -> frozenset[str]:
    """Return who requested, decided and commented, as the audit names them. Source: D55"""
    return frozenset({found.requester, found.decided_by, *(each.author for each in found.comments)} - {""})


async def expire_requests(registry: Registry, *, now: float) -> int:
    """End requests that waited for 14 days; return how many.

    A hundred at most: called again and again, it ends all. Raises StoreUnavailable. Source: D55
    """
    oldest = await registry.directory.page(ChangeRequest, {"state": "pending"}, limit=_AT_ONCE)
    ended = 0
    for request in oldest:
        if state_at(request, now) is not ApprovalState.EXPIRED:
            break
        after = decide_request(request, ApprovalEvent.EXPIRE, by=SYSTEM, reason="", now=now)
        event = build_request_event(AuditAction.APPROVAL_EXPIRE, request, by=SYSTEM)
        try:
            await _replace_request(registry, request, after, event)
        except ChangedMeanwhile:  # another process did it, or somebody decided at the last moment
            continue
        ended += 1
    return ended


async def list_requests(
    registry: Registry, actor: Actor, *, entity_id: str, state: str, now: float, after: str, limit: int
) -> ListPage[RequestSummary]:
    """List requests, the oldest first.

    `entity_id` and `state` narrow the list unless they are empty. Raises Refused, access.Forbidden, StoreUnavailable.
    Source: D55
    """
    authorise(actor, "read", Object(kind="approval", entity_id=entity_id))
    found = await _read_requests(registry, entity_id, state, after=parse_place(after, 1), limit=limit + 1)
    page = cut_page(found, limit, [request.request_id for request in found])
    return ListPage(
        found=tuple([await summarise_request(registry, request, actor, now) for request in page.found]),
        after=page.after,
    )


async def read_request(registry: Registry, actor: Actor, request_id: str, *, now: float) -> RequestSummary:
    """Return one request.

    Raises Refused if there is none, access.Forbidden, StoreUnavailable. Source: D55
    """
    found = await _find_readable(registry, request_id, actor)
    return await summarise_request(registry, found, actor, now)


async def summarise_request(registry: Registry, found: ChangeRequest, reader: Actor, now: float) -> RequestSummary:
    """A request as people read it. Raises StoreUnavailable. Source: D55, D68"""
    changes = found.changes
    names = await compare_names(registry, found)
    actors = await name_actors(registry, found.entity_id, list_actors(found), reader=reader)
    state = state_at(found, now)
    then = read_requested_names(found, names.people.keys() - names.gone)
    people = names.people if state is ApprovalState.PENDING else {**names.people, **then}
    return RequestSummary(
        request=found,
        state=state.value,
        requester=actors[found.requester],
        decided_by=actors.get(found.decided_by, ""),
        differences=tuple(difference(change, people) for change in changes),
        names=names,
        comments=tuple((each, actors[each.author]) for each in found.comments),
    )


def encode_comments(found: RequestSummary) -> list[dict[str, str | int]]:
    """Return the comments of a request for a program, the earliest first. Source: D55"""
    return [
        {"author": each.author, "author_name": str(author), "text": each.text, "at": each.at}
        for each, author in found.comments
    ]


def build_request_object(found: ChangeRequest, kind: Literal["approval", "withdrawal"]) -> Object:
    """Return a request as an object of access. Source: D53, D55"""
    services = {build_object(each).service_id for each in found.changes}
    return Object(
        kind=kind,
        entity_id=found.entity_id,
        service_id=services.pop() if len(services) == 1 else "",
        requester=found.requester,
    )


def can_decide(found: ChangeRequest, actor: EntityAdministrator) -> bool:
    """Return whether a request waits for this administrator.

    A sign-in that is too old does not matter. Source: D53, D55
    """
    return state_at(found, actor.now) is ApprovalState.PENDING and not _why_not(found, actor)


def waits_for_others(found: ChangeRequest, actor: EntityAdministrator) -> bool:
    """Return whether a request of this administrator waits."""
    return state_at(found, actor.now) is ApprovalState.PENDING and _is_own(found, actor)


def waits_for_requester(found: ChangeRequest, actor: EntityAdministrator) -> bool:
    """Return whether a comment on a request waits for its requester."""
    return waits_for_others(found, actor) and bool(found.comments) and found.comments[-1].author != actor.name


def lowers_approvals(entity: Entity, chosen: Approvals) -> bool:
    """Return whether fewer changes would need approval, which needs approval itself. Source: D55"""
    return step(plan_choice(entity, chosen)) < 0


async def lacks_approvers(registry: Registry, entity: Entity, chosen: Approvals) -> bool:
    """Return whether too few people are there who can approve.

    Raises StoreUnavailable. Source: D55
    """
    if step(plan_choice(entity, chosen)) <= 0:
        return False
    return approvers(await registry.directory.administrators(entity.entity_id)) < APPROVERS


async def list_waiting(
    registry: Registry, actor: EntityAdministrator, *, own: bool, now: float, after: str, limit: int
) -> ListPage[Request]:
    """List requests that wait, the oldest first.

    Own ones, or others that the actor can decide on. There may be fewer than `limit` although more follow. Raises
    Refused, StoreUnavailable. Source: D55
    """

    def fits(row: ChangeRequest) -> bool:
        fitting = state_at(row, now) is ApprovalState.PENDING and _is_own(row, actor) is own
        return fitting and (own or not _why_not(row, actor))

    page = await _search_waiting(registry, actor, fits, after=after, limit=limit)
    return await _show_page(registry, actor, page, now=now)


async def list_waiting_on_person(
    registry: Registry, actor: EntityAdministrator, user_id: str, *, now: float, limit: int
) -> list[Request]:
    """List waiting requests on a person, the oldest first.

    Those that the actor may read. Raises StoreUnavailable. Source: D55
    """

    def fits(row: ChangeRequest) -> bool:
        concerned = any(each.key[0] == user_id for each in row.changes)
        return concerned and state_at(row, now) is ApprovalState.PENDING and _may_read(row, actor)

    page = await _search_waiting(registry, actor, fits, after="", limit=limit)
    return list((await _show_page(registry, actor, page, now=now)).found) if page.found else []


async def find_requested_removals(registry: Registry, actor: EntityAdministrator, *, now: float) -> RequestedRemovals:
    """Find the records whose removal waits for approval.

    Of the oldest requests that the actor may read. Raises StoreUnavailable. Source: D55
    """
    where = {"entity_id": actor.entity_id, "state": "pending"}
    waiting = await registry.directory.page(ChangeRequest, where, limit=_MOST_LOOKED_THROUGH)
    shown = (each for each in waiting if state_at(each, now) is ApprovalState.PENDING and _may_read(each, actor))
    return RequestedRemovals(change.record for each in shown for change in each.changes if change.verb == "remove")


async def list_ended(
    registry: Registry,
    actor: EntityAdministrator,
    *,
    states: Sequence[ApprovalState],
    now: float,
    before: str,
    limit: int,
) -> ListPage[Request]:
    """List requests that have ended, the latest first.

    Of a sub-administrator those at the listed services, and own ones. There may be fewer than `limit` although more
    follow. Raises StoreUnavailable. Source: D55
    """

    async def read(start: str, limit: int) -> list[ChangeRequest]:
        rows: list[ChangeRequest] = []
        for each in states:
            where = {"entity_id": actor.entity_id, "state": each.value}
            rows += await registry.lists.find(REQUESTS, where, after=(start,), limit=limit, backwards=True)
        return sorted(rows, key=attrgetter("request_id"), reverse=True)[:limit]

    page = await search_page(
        read, lambda row: row.request_id, lambda row: _may_read(row, actor),
        after=before if before and is_storable(before) else LAST, at_once=_AT_ONCE, limit=limit,
    )  # fmt: skip
    return await _show_page(registry, actor, page, now=now)


async def load_changes(registry: Registry, actor: EntityAdministrator, request_ids: Iterable[str]) -> ChangesWithNames:
    """Return the changes of requests of the actor's entity that are kept.

    Raises access.Forbidden, StoreUnavailable. Source: D55, D57
    """
    keys = {(each,) for each in request_ids}
    if not keys:
        return NO_CHANGES
    authorise(actor, "read", Object(kind="approval", entity_id=actor.entity_id))
    found = (await registry.directory.read(ChangeRequest, keys)).values()
    own = [each for each in found if each.entity_id == actor.entity_id]
    changes = {each.request_id: each.changes for each in own}
    names = await load_names(registry, actor.entity_id, [each for some in changes.values() for each in some])
    return ChangesWithNames(
        changes=changes, names={each.request_id: _with_names_as_requested(each, names) for each in own}
    )


async def load_request(registry: Registry, actor: EntityAdministrator, request_id: str, *, now: float) -> Request:
    """Return one request.

    Own ones are shown even if their service is no longer in the actor's list.

    Raises NoRequest if there is none of this entity, access.Forbidden, StoreUnavailable. Source: D55
    """
    found = await _find(registry, request_id)
    if found is None or found.entity_id != actor.entity_id:
        raise NoRequest(_NO_SUCH_REQUEST)
    if not _is_own(found, actor):
        authorise(actor, "read", build_request_object(found, "approval"))
    pending = state_at(found, now) is ApprovalState.PENDING
    differing = await compare_names(registry, found) if pending else None
    names_read = differing.people if differing is not None else {}  # what is shown is what an approver signs
    page = ListPage(found=(found,))
    shown = (await _show_page(registry, actor, page, now=now, names_read=names_read, alone=True)).found[0]
    if not pending:
        return shown
    shown = msgspec.structs.replace(shown, name_changes=differing)
    if not shown.why_not:
        stale_reason = _explain_stale(differing) if differing is not None else None
        why = stale_reason or await _why_no_approval(registry, found, actor)
        shown = msgspec.structs.replace(shown, why_no_approval=why)
        if not shown.why_no_approval:
            return shown
    return msgspec.structs.replace(shown, nobody_approves=not shown.approvers)


async def load_names(
    registry: Registry,
    entity_id: str,
    changes: Collection[Change],
    people: Iterable[str] = (),
    names_read: Mapping[str, str] = _NO_NAMES,
) -> RequestNames:
    """Return the names of people, entities and services in changes.

    People are named as the entity of the changes knows them, or did, and whom it invites by their address; `people` has
    those who acted on them. `names_read` are names of the entity's people that were read before, and
    hold. Raises StoreUnavailable. Source: D55, D60, D61, D68
    """
    former, outside, entities, services = set[str](), set[str](), set[str](), set[str]()
    typed: dict[str, str] = {}
    for change in changes:
        for record in filter(None, (change.before, change.after)):
            own = getattr(record, "entity_id", "") == entity_id
            (former if own else outside).add(str(getattr(record, "user_id", "")))
            entities |= {str(getattr(record, "entity_id", "")), str(getattr(record, "client_entity_id", ""))}
            services.add(str(getattr(record, "service_id", "")))
            if isinstance(record, Administrator) and isinstance(record.services, tuple):
                services |= set(record.services)
            if isinstance(record, Membership) and record.invited and own:
                typed[record.user_id] = shown_name(record, placeholder(record))
    directory = registry.directory
    known = await directory.read(Entity, {(each,) for each in entities if each})
    of = await directory.read(Service, {(each,) for each in services if each})
    members = set(people)
    found = typed | await read_names(registry, entity_id, members, former=former | members, outside=outside)
    own = {*former, *members, *typed}
    return RequestNames(
        people={each: names_read.get(each, name) if each in own else name for each, name in found.items()},
        entities={each.entity_id: each.name_for(entity_id) for each in known.values()},
        services={each.service_id: each.name for each in of.values()},
    )


async def _load_requester(registry: Registry, request: ChangeRequest, now: float) -> tuple[Actor, list[Precondition]]:
    """The requester, as if signed in at this moment.

    A client of the API has what it may ask for now. Also returns guards of that.
    """
    kind, _, identifier = request.requester.partition(":")
    if kind == "user":
        try:
            return await load_administrator(registry, identifier, request.entity_id, auth_time=now, now=now), []
        except Forbidden as error:
            raise Refused(
                phrase("the requester no longer has permission for this: {reason}", reason=error.reason)
            ) from None
    found = await load_api_client(registry, identifier) if kind == "client" else None
    if found is None or found[0].entity_id != request.bound_to:
        raise Refused(phrase("the requester no longer has permission here: decline it"))
    return found[0], [found[1]]


async def _read_requests(
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


async def _find_readable(registry: Registry, request_id: str, actor: Actor) -> ChangeRequest:
    """Find a request.

    Of another entity's an entity learns as much as of none.
    """
    found = await _find(registry, request_id)
    authorise(actor, "read", Object(kind="approval") if found is None else build_request_object(found, "approval"))
    if found is None:
        raise NoRequest(_GONE)
    return found


async def _find(registry: Registry, request_id: str) -> ChangeRequest | None:
    return await registry.directory.find(ChangeRequest, request_id) if is_storable(request_id) else None


def _require_write(actor: Actor, found: ChangeRequest | None, kind: Literal["approval", "withdrawal"]) -> ChangeRequest:
    """Return a request that the actor may write.

    Without the right nobody learns whether there is one.
    """
    authorise(actor, "write", Object(kind=kind) if found is None else build_request_object(found, kind))
    if found is None:
        raise NoRequest(_GONE)
    return found


async def _find_decidable(
    registry: Registry, request_id: str, actor: Actor, event: ApprovalEvent, reason: str
) -> ChangeRequest:
    found = await _find_readable(registry, request_id, actor)
    authorise(actor, "write", build_request_object(found, "approval"))
    require_reason(actor)
    if reason or event is ApprovalEvent.DECLINE:
        check_reason(reason)
    return found


def _decide_request(found: ChangeRequest, event: ApprovalEvent, actor: Actor, reason: str, now: float) -> ChangeRequest:
    try:
        return decide_request(found, event, by=actor.name, reason=reason, now=now)
    except RequestClosed as error:
        raise AlreadyDecided(str(error)) from None


async def _write_decision(
    registry: Registry, found: ChangeRequest, after: ChangeRequest, event: ApprovalEvent, actor: Actor
) -> ChangeRequest:
    await _replace_request(registry, found, after, _build_event(found, event, actor))
    return after


async def _replace_request(registry: Registry, found: ChangeRequest, after: ChangeRequest, event: AuditEvent) -> None:
    """Write a request, if it is still as it was."""
    change = Change(found, after, event)
    await registry.directory.write([*guard_records([change]), change])


def _build_event(found: ChangeRequest, event: ApprovalEvent, actor: Actor) -> AuditEvent:
    return build_request_event(AuditAction(f"approval.{event.value}"), found, by=actor.name, detail=actor.detail)


def plan_choice(entity: Entity, chosen: Approvals) -> Change:
    """The change of which changes need approval. Source: D55"""
    becomes = msgspec.structs.replace(entity, approvals=chosen)
    return Change(entity, becomes)


async def _search_waiting(
    registry: Registry, actor: EntityAdministrator, fits: Callable[[ChangeRequest], bool], *, after: str, limit: int
) -> ListPage[ChangeRequest]:
    """A page of fitting requests that are stored as pending."""
    where = {"entity_id": actor.entity_id, "state": ApprovalState.PENDING.value}
    return await search_page(
        lambda start, limit: registry.directory.page(ChangeRequest, where, after=parse_place(start, 1), limit=limit),
        lambda row: format_place(row.key), fits, after=after, at_once=_AT_ONCE, limit=limit,
    )  # fmt: skip


def _with_names_as_requested(request: ChangeRequest, names: RequestNames, *, still_waits: bool = False) -> RequestNames:
    """Names, those of the entity's people as in the request.

    If it `still_waits`, only of people who are gone. Third parties' people keep the name that the entity may see.
    """
    records = (each.record for each in request.changes)
    own = {getattr(each, "user_id", "") for each in records if getattr(each, "entity_id", "") == request.entity_id}
    then = {user_id: name for user_id, name in read_requested_names(request, names.people).items() if user_id in own}
    return msgspec.structs.replace(names, people={**then, **names.people} if still_waits else {**names.people, **then})


async def _find_approvers(
    registry: Registry, pending: Sequence[ChangeRequest], actor: EntityAdministrator, *, alone: bool
) -> dict[str, list[str]]:
    """Find the people who can decide on each request.

    Of a request `alone` they can also approve it.
    """
    found: dict[str, list[str]] = {each.request_id: [] for each in pending}
    administrators = await registry.directory.administrators(actor.entity_id) if pending else []
    enabled = [
        msgspec.structs.replace(
            actor, user_id=each.record.user_id, level=each.record.level, services=each.record.services, alone=False
        )
        for each in administrators
        if each.enabled
    ]
    for request in pending:
        for other in enabled:
            if len(found[request.request_id]) == _APPROVERS_NAMED:
                break
            if _is_own(request, other) or _why_not(request, other):
                continue
            if not (alone and await _why_no_approval(registry, request, other)):
                found[request.request_id].append(other.user_id)
    return found


def _is_own(found: ChangeRequest, actor: Actor) -> bool:
    return found.requester == actor.name


def _may_read(found: ChangeRequest, actor: EntityAdministrator) -> bool:
    return _is_own(found, actor) or is_allowed(actor, "read", build_request_object(found, "approval"))


def _why_not(found: ChangeRequest, actor: EntityAdministrator) -> str:
    """Return why the actor, signed in recently, cannot decide on a request."""
    try:
        authorise(assume_recent(actor), "write", build_request_object(found, "approval"))
    except Forbidden as error:
        return error.reason
    return ""


async def _why_no_approval(registry: Registry, found: ChangeRequest, actor: EntityAdministrator) -> str:
    """Return why the actor can only decline.

    Approval takes the right to make the changes.
    """
    try:
        await authorise_changes(registry, assume_recent(actor), found.changes)
    except Forbidden as error:
        return error.reason
    except Refused as error:
        return str(error)
    return ""


async def _show_page(
    registry: Registry,
    actor: EntityAdministrator,
    page: ListPage[ChangeRequest],
    *,
    now: float,
    names_read: Mapping[str, str] = _NO_NAMES,
    alone: bool = False,
) -> ListPage[Request]:
    """A page of requests; `names_read` as in `load_names`, `alone` as in `_find_approvers`."""
    changes = {each.request_id: each.changes for each in page.found}
    actors = {name for each in page.found for name in list_actors(each)}
    people = [identifier for kind, _, identifier in (name.partition(":") for name in actors) if kind == "user"]
    pending = [each for each in page.found if state_at(each, now) is ApprovalState.PENDING]
    approving = await _find_approvers(registry, pending, actor, alone=alone)
    people += [identifier for some in approving.values() for identifier in some]
    names = await load_names(
        registry, actor.entity_id, [each for some in changes.values() for each in some], people, names_read
    )
    called = {name: name_actor(name, names.people) for name in actors}
    shown = []
    for each in page.found:
        state = state_at(each, now)
        shown.append(
            Request(
                record=each,
                state=state,
                changes=changes[each.request_id],
                names=_with_names_as_requested(each, names, still_waits=state is ApprovalState.PENDING),
                requester=called[each.requester],
                decided_by=called.get(each.decided_by, ""),
                comments=tuple((comment, called[comment.author]) for comment in each.comments),
                own=_is_own(each, actor),
                approvers=tuple(names.people.get(one, "") for one in approving.get(each.request_id, ())),
                why_not=_why_not(each, actor) if state is ApprovalState.PENDING else "",
            )
        )
    return ListPage(found=tuple(shown), after=page.after)
