"""A change request as a state machine: pending, then decided once (D55).

`TRANSITIONS` lists the events that a state accepts, and the state after each. A request is decided by one conditional
write in the transaction of what it changes. `change_needs_approval` says which changes need one.
"""

from __future__ import annotations

from collections import defaultdict
from enum import Enum
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.rules.directory.access import SYSTEM, Level
from corpid.rules.directory.document import KINDS, Current, DocumentEntry, Key, Kind
from corpid.rules.directory.plan import check
from corpid.rules.directory.records import (
    Administrator,
    AppointmentStatus,
    Approvals,
    Change,
    ChangeRequest,
    Entity,
    Membership,
    RequestComment,
    Service,
    ThirdPartyGrant,
)
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from corpid.rules.fields import KeyedRecord


class ApprovalState(Enum):
    """The state of a change request."""

    PENDING = "pending"
    APPROVED = "approved"
    """and carried out, in the same transaction"""
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"
    """by the requester"""
    EXPIRED = "expired"
    """14 days passed without a decision"""


class ApprovalEvent(Enum):
    """A decision on a change request, or the end of its time."""

    APPROVE = "approve"
    DECLINE = "decline"
    WITHDRAW = "withdraw"
    EXPIRE = "expire"


TRANSITIONS: Final[Mapping[ApprovalState, Mapping[ApprovalEvent, ApprovalState]]] = {
    ApprovalState.PENDING: {
        ApprovalEvent.APPROVE: ApprovalState.APPROVED,
        ApprovalEvent.DECLINE: ApprovalState.DECLINED,
        ApprovalEvent.WITHDRAW: ApprovalState.WITHDRAWN,
        ApprovalEvent.EXPIRE: ApprovalState.EXPIRED,
    },
    ApprovalState.APPROVED: {},
    ApprovalState.DECLINED: {},
    ApprovalState.WITHDRAWN: {},
    ApprovalState.EXPIRED: {},
}

LIFETIME_SECONDS: Final = 14 * 86400
MOST_CHANGES: Final = 100
"""asked for in one request, which is carried out in one transaction; what ends with memberships comes on top"""
MOST_REASON_CHARACTERS: Final = 500
MOST_COMMENTS: Final = 50
"""of one request"""


def is_one_line(text: str) -> bool:
    """Return whether a text is one line, neither empty nor too long. Source: D55"""
    return bool(text.strip()) and len(text) <= MOST_REASON_CHARACTERS and text.isprintable()


class RequestClosed(Exception):
    """The request is in a state that accepts no such event."""

    def __init__(self, state: ApprovalState) -> None:
        self.state = state
        super().__init__(_OVER[state])


_OVER: Final[Mapping[ApprovalState, str]] = {
    ApprovalState.PENDING: "this request is still waiting for a decision",
    ApprovalState.APPROVED: "this request was already approved",
    ApprovalState.DECLINED: "this request was already declined",
    ApprovalState.WITHDRAWN: "this request was withdrawn by the person who made it",
    ApprovalState.EXPIRED: "this request is older than 14 days: make it again",
}


def state_at(request: ChangeRequest, now: float) -> ApprovalState:
    """Return the state of a request at a moment, in epoch seconds. Source: D55."""
    state = ApprovalState(request.state)
    over = state is ApprovalState.PENDING and now >= request.created_at + LIFETIME_SECONDS
    return ApprovalState.EXPIRED if over else state


def decide_request(request: ChangeRequest, event: ApprovalEvent, *, by: str, reason: str, now: float) -> ChangeRequest:
    """Return a request after an event.

    `by` is the actor as the audit names it, `now` in epoch seconds. Raises RequestClosed. Source: D55
    """
    state = state_at(request, now)
    due = event is ApprovalEvent.EXPIRE
    before = ApprovalState(request.state) if due else state
    if event not in TRANSITIONS[before] or due is not (state is ApprovalState.EXPIRED):
        raise RequestClosed(state)
    after = TRANSITIONS[before][event]
    return msgspec.structs.replace(
        request, state=after.value, decided_by=by, decided_reason=reason, decided_at=int(now)
    )


def add_comment(request: ChangeRequest, *, by: str, text: str, now: float) -> ChangeRequest:
    """Return a request with a further comment.

    `by` is the actor as the audit names it, `now` in epoch seconds. Raises RequestClosed unless it waits. Source: D55
    """
    state = state_at(request, now)
    if state is not ApprovalState.PENDING:
        raise RequestClosed(state)
    return msgspec.structs.replace(
        request, comments=(*request.comments, RequestComment(author=by, text=text, at=int(now)))
    )


STRICTNESS: Final[tuple[Approvals, ...]] = ("none", "roles", "all")
"""the values of `approvals`, in increasing order"""
_AT_SERVICE: Final[frozenset[Kind]] = frozenset({"assignment", "third-party row", "grant"})
_ROLES: Final[frozenset[Kind]] = _AT_SERVICE | {"administrator"}
_ALL: Final[frozenset[Kind]] = _ROLES | {"membership", "entity"}
_DEMANDED: Final[Mapping[Approvals, frozenset[Kind]]] = {"none": frozenset(), "roles": _ROLES, "all": _ALL}
OF_ENTITIES: Final = _ALL
"""kinds that a request may change"""


def kind_needs_approval(kind: Kind, entity: Entity | None, service: Service | None = None) -> bool:
    """Return whether an entity wants every change of a kind approved.

    But for the end of a grant. `service` is the one of a role or grant. Source: D55
    """
    if service is not None and service.approval_required and kind in _AT_SERVICE:
        return True
    return entity is not None and kind in _DEMANDED[entity.approvals]


def change_needs_approval(change: Change, level: Level, entity: Entity | None, service: Service | None) -> bool:
    """Return whether an entity's own change needs approval.

    `level` is that of the person concerned: it rests and ends with the membership. `entity` is the one acted for,
    `service` the one of the role, both as they are; None: there is none, or it does not matter. A grant is ended at
    once, and so is an offer. Source: D55, D56
    """
    if isinstance(change.before, ThirdPartyGrant) and change.after is None:
        return False
    takes_level = (change.kind == "membership" and bool(level)) or step(change) < 0
    return kind_needs_approval(change.kind, entity, service) or (
        takes_level and entity is not None and entity.approvals == "roles"
    )


def step(change: Change) -> int:
    """Return by how much an entity becomes stricter; negative: laxer.

    One that is removed can be added again without its demands. Source: D55.
    """
    was, becomes = change.before, change.after
    if not isinstance(was, Entity):
        return 0
    after = becomes.approvals if isinstance(becomes, Entity) else "none"
    return STRICTNESS.index(after) - STRICTNESS.index(was.approvals)


def is_asked_for_oneself(request: ChangeRequest) -> bool:
    """Return whether a person asks for roles of their own.

    Such a request always needs approval. Source: D55
    """
    return all(
        change.kind == "assignment" and change.after is not None and request.requester == f"user:{change.key[0]}"
        for change in request.changes
    )


def ends_approval(change: Change) -> bool:
    """Return whether a service that demands approval no longer does.

    Also if it is removed. Source: D55.
    """
    was, becomes = change.before, change.after
    demanded = isinstance(was, Service) and was.approval_required
    return demanded and not (isinstance(becomes, Service) and becomes.approval_required)


def approvers(administrators: Iterable[AppointmentStatus[Administrator]]) -> int:
    """Return how many of an entity's administrators can approve.

    Sub-administrators approve at their services only, so they do not count. Source: D53, D55
    """
    return sum(each.enabled and each.record.approves for each in administrators)


def refresh_change(
    change: Change, current: Mapping[Kind, Mapping[tuple[str, ...], KeyedRecord]], *, now: float
) -> Change:
    """The change of a membership, made `now` (epoch seconds).

    Its e-mail was perhaps sent meanwhile, which is nobody's decision, so that it makes no request stale. Source: D55,
    D60
    """
    was, found, becomes = change.before, current.get(change.kind, {}).get(change.key), change.after
    if not isinstance(was, Membership) or not isinstance(found, Membership):
        return change
    sent_at = found.invitation_sent_at
    if msgspec.structs.replace(was, invitation_sent_at=sent_at) != found:
        return change
    if isinstance(becomes, Membership):
        due = becomes.invitation_sent_at if becomes.invitation_sent_at != was.invitation_sent_at else sent_at
        becomes = msgspec.structs.replace(becomes, invitation_sent_at=due, changed_at=int(now))
    return Change(found, becomes)


REDIRECTED: Final = phrase("the invitation now goes to another address: make a new request")
"""the reason for which a request ends with the address of its invitation (D68)"""


def decision_reason(request: ChangeRequest) -> str:
    """The reason of a decision, translatable if nobody typed it. Source: D55, D68"""
    return REDIRECTED if request.decided_by == SYSTEM and request.decided_reason else request.decided_reason


def stale(changes: Iterable[Change], current: Mapping[Kind, Mapping[tuple[str, ...], KeyedRecord]]) -> list[Change]:
    """Return the changes whose record is no longer as it was.

    `current` is what is there now. Source: D55
    """
    return [change for change in changes if current.get(change.kind, {}).get(change.key) != change.before]


def unfit(
    changes: Iterable[Change], current: Current, user_names: Mapping[str, str], *, live: bool = True
) -> list[str]:
    """Return why changes would break a rule by now, a sentence each.

    The rules are those of a directory file; besides, service and entity are enabled if they are to be `live`. `current`
    holds what the changes name, `user_names` is user identifier → user name. Source: D55, R-14, R-21
    """
    wanted: dict[Kind, dict[Key, tuple[DocumentEntry, KeyedRecord]]] = {kind: {} for kind in KINDS}
    removed: defaultdict[Kind, set[Key]] = defaultdict(set)
    disabled: dict[str, None] = {}
    for change in changes:
        record = change.after
        if record is None:
            removed[change.kind].add(change.key)
            continue
        key = tuple(user_names.get(part, part) for part in change.key)
        fields = msgspec.structs.asdict(record)
        wanted[change.kind][change.key] = (
            DocumentEntry(kind=change.kind, key=key, line=0, fields=fields, lines={}),
            record,
        )
        for kind, member in _NAMED if live else ():
            named = current.records_of(kind).get((str(fields.get(member, "")),))
            if isinstance(named, Entity | Service) and not named.enabled and change.kind != kind:
                disabled[f"the {kind} {named.key[0]} is disabled"] = None
    found = check(wanted, current, {kind: frozenset(keys) for kind, keys in removed.items()}, lambda _: [])
    return [*(problem.reason for problem in found.problems), *disabled]


_NAMED: Final[tuple[tuple[Kind, str], ...]] = (
    ("entity", "entity_id"), ("entity", "client_entity_id"), ("service", "service_id"),
)  # fmt: skip
"""kinds of records, with the members by which others name them"""
