"""Changes of records: authorised, checked, and written or requested.

`write_changes` is the way of every change from any door to the store. It authorises all changes, with facts that are
looked up, checks the records that would result, and writes all of them with guards: what was decided on is looked at
again in the transaction of the change, so that a right which ends meanwhile gives nothing. What needs the approval of
another administrator becomes a request (D55).
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from corpid.flows.directory.actors import check_still_acting, guard_acting, is_last_owner
from corpid.flows.directory.person_names import name_subjects, read_requested_people
from corpid.flows.large import in_thread_if_many, in_turns
from corpid.rules.audit import ACTING_FOR, BYPASSED, AuditAction, AuditEvent
from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.access import (
    SYSTEM,
    Actor,
    ApiClient,
    CommandLine,
    DeploymentOperator,
    DirectoryFile,
    EntityAdministrator,
    Forbidden,
    Level,
    Object,
    Person,
    ProvisioningToken,
    authorise,
    on_self,
    side_of,
)
from corpid.rules.directory.approvals import (
    MOST_CHANGES,
    MOST_REASON_CHARACTERS,
    OF_ENTITIES,
    REDIRECTED,
    ApprovalState,
    approvers,
    change_needs_approval,
    decide_request,
    ends_approval,
    is_one_line,
    state_at,
    step,
    unfit,
)
from corpid.rules.directory.approvals import ApprovalEvent as Decision
from corpid.rules.directory.document import KINDS, Current, Key, Kind
from corpid.rules.directory.memberships import (
    CARRIED,
    MemberCondition,
    MemberQuery,
    is_invitation,
    is_redirection,
    name_invitation,
)
from corpid.rules.directory.names import canonical, fold_text
from corpid.rules.directory.plan import APPROVERS, keys_named
from corpid.rules.directory.records import (
    KIND_OF,
    RECORDS,
    Administrator,
    Assignment,
    Change,
    ChangeRequest,
    Entity,
    LastOwnerInvariant,
    Membership,
    Operator,
    Precondition,
    RolesUnder,
    Service,
    SignOut,
    StoreChange,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
    Verb,
    list_role_parts,
)
from corpid.rules.directory.third_parties import AuthorisationEvent, AuthorisationSide, event_by, sides
from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence

    from corpid.rules.fields import KeyedRecord
    from corpid.stores.sql.directory import Directory, R
    from corpid.stores.sql.registry import Registry

NEEDS_APPROVAL: Final = phrase("this needs the approval of another administrator")
Records: TypeAlias = "dict[Kind, dict[Key, KeyedRecord]]"
_NOUNS: Final[Mapping[str, str]] = {
    "third-party row": "third_party_assignment", "API client": "api_client", "provisioning token": "provisioning_token",
}  # fmt: skip
"""of kinds whose name is no noun of an action"""
_VERBS: Final[Mapping[Verb, str]] = {"add": "add", "change": "update", "remove": "remove"}
ACTIONS: Final[Mapping[tuple[str, Verb], AuditAction]] = {
    (kind, verb): AuditAction(f"{_NOUNS.get(kind, kind)}.{word}")
    for kind in (*KINDS, "API client", "provisioning token")
    for verb, word in _VERBS.items()
    if (kind, verb) != ("provisioning token", "change")
}
SWITCHES: Final[Mapping[str, tuple[AuditAction, AuditAction]]] = {
    kind: (AuditAction(f"{_NOUNS.get(kind, kind)}.disable"), AuditAction(f"{_NOUNS.get(kind, kind)}.enable"))
    for kind in ("API client", "client", "entity", "user")
}
"""off and on, of the kinds whose switch has actions of its own"""
REMOVALS: Final[Mapping[Kind, tuple[AuditAction, ...]]] = {
    **{kind: (ACTIONS[kind, "remove"],) for kind in KINDS},
    "grant": (
        AuditAction.GRANT_REMOVE, AuditAction.GRANT_DECLINE, AuditAction.GRANT_WITHDRAW, AuditAction.GRANT_END,
    ),
}  # fmt: skip
"""the actions after which there is no such record any more"""
_LOOKED_UP: Final = frozenset({"assignment", "administrator", "grant", "third-party row"})
"""kinds whose rules are about what they name"""
_OF_TWO_ENTITIES: Final = frozenset({"grant", "third_party_assignment"})
_SAME_NAME: Final = 10
_AT_ONCE: Final = 200
_MOST_ENDING: Final = 1000
"""roles that a membership ends with, of each kind"""
_MOST_NAMED: Final = 2 * _MOST_ENDING + 2
"""changes that a request names with those that follow: one transaction, which makes other writers wait"""
_MOST_WAITING: Final = 4000
"""changes of an entity that wait for approval: pages that count or list requests read them all"""
_MOST_GRANTS: Final = 1000
"""of one entity to one third party for one service, that a row is compared with"""


class Refused(Exception):
    """A command cannot be carried out.

    The text says why and what to do; further texts are lines that list something. Nothing was changed.
    """


class InvalidMembers(Refused):
    """Members of a record break rules.

    `faults` are sentences that begin with the name of a member and a colon, if they are about one.
    """

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


class AuthorisedChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Changes that an actor may make."""

    actor: Actor
    changes: tuple[Change, ...]
    objects: tuple[Object, ...]
    guards: tuple[StoreChange, ...]
    needing: tuple[Change, ...]
    """those that need another administrator's approval, if an entity makes them"""
    ended: tuple[StoreChange, ...] = ()
    """the requests that end with them, of invitations that go to another address (D68)"""

    @property
    def invited(self) -> dict[tuple[str, ...], Membership]:
        """The invitations that the changes are about, by key."""
        seen = [each.record for each in self.guards if isinstance(each, Precondition)]
        known = [*seen, *((change.before or change.after) for change in self.changes)]
        return {each.key: each for each in known if isinstance(each, Membership) and each.invited}


class NoReason(Refused):
    """A request or a decision without its reason."""


class IdentifierConflict(Exception):
    """Another member of the entity has this `member`: `user_name` or `external_id`."""

    def __init__(self, member: str) -> None:
        self.member = member
        super().__init__(f"{member}: another member of this entity has it")


class RequestDetails(msgspec.Struct, frozen=True):
    """The making of a request, should a change need approval."""

    reason: str
    """for the approver"""
    now: float
    """epoch seconds"""
    unique: str
    """makes the identifier of the request, with the moment"""
    event: AuditEvent | None = None
    """that it was made, if not the actor's own say"""
    approval_needed: bool = False
    """whether approval is requested even if these changes alone need none: others that were confirmed with them do"""


class ApprovedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that is approved: the reason of its changes."""

    before: ChangeRequest
    after: ChangeRequest
    event: AuditEvent
    detail: dict[str, str]
    """of the event of each change"""
    current: Records
    """what is there of what the changes name"""


async def write_changes(
    registry: Registry,
    actor: Actor,
    changes: Sequence[Change],
    *,
    asking: RequestDetails | ApprovedRequest | None = None,
    planned: bool = False,
    seen: Iterable[StoreChange] = (),
    batch: str = "",
    once_checked: Callable[[], Awaitable[None]] | None = None,
    within: Callable[[], Awaitable[None]] | None = None,
) -> ChangeRequest | None:
    """Write changes with their events, or request what needs approval.

    This is the only way from a door to the store: authorise, check the records that would result, ask for approval or
    write. Returns the request, None if the changes were written. `asking` is how a request would be made, or the one
    that is carried out; without it what needs approval is refused. `planned` changes have been checked by a plan.
    `seen` are further records that the caller has decided on. Level and roles end with a membership, each with an event; a
    request names them. `batch` names changes that belong together, in the event of each.
    `once_checked` is awaited before anything is written, `within` in the transaction of the last change. Raises
    access.Forbidden, NoReason, IdentifierConflict, Refused, Conflict (LastOwnerRemoved if the last operator or owner
    would go, ChangedMeanwhile if a record has changed since the change was planned), StoreUnavailable. Source: SECURITY.md, D53, D55,
    D57, D59, D60
    """
    approved = asking if isinstance(asking, ApprovedRequest) else None
    found = await authorise_changes(registry, actor, changes, approving=approved.before.request_id if approved else "")
    if not planned:
        await check_changes(registry, actor, changes, approved.current if approved else None)
    elif is_of_entity(actor):  # a plan knows no names of other members
        await _check_members(registry, changes)
    to_make = None
    needed = found.needing or (isinstance(asking, RequestDetails) and asking.approval_needed)
    if needed and is_of_entity(actor) and approved is None:
        if not isinstance(asking, RequestDetails) or isinstance(actor, ProvisioningToken):
            needing = found.needing[0]
            raise Forbidden(actor, "delete" if needing.verb == "remove" else "write", needing.kind, NEEDS_APPROVAL)
        to_make = asking
        check_reason(to_make.reason)
    if once_checked is not None:
        await once_checked()
    guards = [*found.guards, *seen]
    request = None
    if to_make is not None:
        requested = await _add_endings(registry, changes)
        request = await _build_request(registry, found, requested, to_make)
        await _check_waiting(registry, actor, request)
        event = to_make.event or AuditEvent(actor=actor.name, action=AuditAction.APPROVAL_REQUEST, detail=actor.detail)
        event = replace(event, object=request.request_id, entity_id=request.entity_id)
        written: list[StoreChange] = [Change(None, request, event)]
        guards += guard_records([*requested, Change(None, request)])
    else:
        detail = approved.detail if approved is not None else {}
        several = len(changes) > 1 or any(is_membership_end(each) for each in changes)
        if several and (batch or actor.request_id):
            detail = {**detail, "batch": batch or actor.request_id}
        written = await in_thread_if_many(partial(record_changes, found, detail), len(changes))
        written += await _end_clients(registry, actor, changes)
        guards += guard_records(each for each in changes if each.seen is None)  # the store compares one that has `seen`
    if approved is not None:
        decision = Change(approved.before, approved.after, approved.event)
        written += [decision, *guard_records([decision])]
    written += await in_thread_if_many(lambda: dict.fromkeys(guards), len(guards))
    await registry.directory.write(written, within=within)
    if isinstance(actor, EntityAdministrator):
        made = request if approved is None else approved.after
        actor.written.extend(changes if made is None else [Change(None, made)])
    return request


def cut_parts(changes: Sequence[Change], most: int = MOST_CHANGES) -> list[Sequence[Change]]:
    """The parts of many changes, for `write_parts`. Source: D81"""
    return [changes[start : start + most] for start in range(0, len(changes), most)]


async def write_parts(
    registry: Registry,
    actor: Actor,
    parts: Iterable[Sequence[Change]],
    *,
    batch: str,
    asking: RequestDetails | None = None,
    planned: bool = False,
    seen: Callable[[Sequence[Change]], Iterable[StoreChange]] | None = None,
) -> AsyncIterator[tuple[int, ChangeRequest | None]]:
    """Write many changes, each part in one transaction, or request it.

    After each part its number, from 1, and its request. All events have the same batch; the identifiers of requests
    begin alike. `seen` gives the records that a part was decided on. The rest is as in `write_changes`; after an
    exception the parts before stay. Source: D55, D81
    """
    for number, part in enumerate(parts, start=1):
        started = time.monotonic()
        details = asking and replace(asking, unique=f"{asking.unique}-{number:04}")
        request = None
        if part:
            request = await write_changes(
                registry, actor, part, asking=details, planned=planned, seen=seen(part) if seen is not None else (),
                batch=batch,
            )  # fmt: skip
        # SQLite has no queue for writers: others need a gap between two writes.
        await asyncio.sleep(time.monotonic() - started)
        yield number, request


async def authorise_changes(
    registry: Registry, actor: Actor, changes: Sequence[Change], *, approving: str = ""
) -> AuthorisedChanges:
    """Authorise all changes.

    `approving` is the request for them, if it is being approved. Raises access.Forbidden if one of them is not allowed,
    Refused if approvals are turned on with nobody to give them, and StoreUnavailable. Source: SECURITY.md, D53,
    D55
    """
    if isinstance(actor, Person):
        return await _authorise_own(registry, actor, changes)
    plain = await in_thread_if_many(lambda: [build_object(change) for change in changes], len(changes))
    objects, guards = await add_facts(registry, actor, changes, plain)

    def allowed() -> None:
        for change, thing in zip(changes, objects, strict=True):
            authorise(actor, "delete" if change.verb == "remove" else "write", thing)

    await in_thread_if_many(allowed, len(changes))
    needing, seen = await _find_needing(registry, actor, changes, objects)
    if is_of_entity(actor):
        guards = await in_thread_if_many(lambda: list(dict.fromkeys([*guards, *seen])), len(guards))
        await _check_approvers(registry, changes)
    return AuthorisedChanges(
        actor=actor,
        changes=tuple(changes),
        objects=tuple(objects),
        guards=tuple(guards),
        needing=tuple(needing),
        ended=tuple(await _decline_requests(registry, actor, changes, approving)),
    )


async def needs_approval(registry: Registry, actor: Actor, changes: Sequence[Change]) -> bool:
    """Return whether changes wait for another administrator's approval.

    Raises as `write_changes`, which writes them. Source: D55, R-14
    """
    found = await authorise_changes(registry, actor, changes)
    await check_changes(registry, actor, changes)
    return bool(found.needing)


async def _authorise_own(registry: Registry, actor: Person, changes: Sequence[Change]) -> AuthorisedChanges:
    """Authorise a request for access of one's own (D55)."""
    objects, guards = [], []
    for change in changes:
        if change.kind != "assignment" or change.after is None:
            raise Forbidden(actor, "write", change.kind)
        entity_id = change.record.entity_id
        acting = await registry.directory.acting(actor.user_id, entity_id)
        belongs = acting is not None and acting.allowed
        thing = Object(kind="access request", entity_id=entity_id, user_id=change.key[0], belongs=belongs)
        authorise(actor, "write", thing)
        objects.append(thing)
        guards += guard_acting(acting) if acting is not None else []
    return AuthorisedChanges(
        actor=actor, changes=tuple(changes), objects=tuple(objects), guards=tuple(guards), needing=tuple(changes)
    )


def record_changes(
    found: AuthorisedChanges,
    detail: Mapping[str, str] = MappingProxyType({}),
) -> list[StoreChange]:
    """Return authorised changes with their events, and what follows from them.

    Each event has `detail`. Source: D54, D55, D57
    """
    needing = {(change.kind, change.key) for change in found.needing}
    invited = found.invited
    written: list[StoreChange] = []
    for change, thing in zip(found.changes, found.objects, strict=True):
        event = build_change_event(found.actor, change, invited=invited.get(change.key[:2]))
        details = {**event.detail, **detail}
        if on_self(found.actor, thing):
            details["self"] = "true"
        if not is_of_entity(found.actor) and (change.kind, change.key) in needing:
            details.setdefault("approval", BYPASSED)
        written.append(replace(change, event=replace(event, detail=details)))
    under = _find_roles_under(found.actor, found.changes)
    return [*written, *_find_sign_outs(found.changes), *under, *found.ended]


async def check_changes(
    registry: Registry, actor: Actor, changes: Sequence[Change], current: Records | None = None
) -> None:
    """Refuse changes after which a record would break a rule.

    `current` is what is there, if a request for them is approved. Raises IdentifierConflict, Refused with a line for
    each rule, StoreUnavailable. Source: D55, D60, D68, R-14, R-21
    """
    await _check_members(registry, changes)
    looked_up = any(change.kind in _LOOKED_UP and change.after is not None for change in changes)
    if current is None and not looked_up:  # an approval has read all of it
        return
    there = Current(records=await read_current(registry, changes) if current is None else current)
    live = is_of_entity(actor) or current is not None
    if unfit(changes, there, {}, live=live):
        names = await name_subjects(registry, [change.record for change in changes])
        problems = unfit(changes, there, names, live=live)
        heading = "the rules do not allow this:" if current is None else "the rules no longer allow this:"
        raise Refused(heading, *(f"  {problem}" for problem in problems))


async def _check_members(registry: Registry, changes: Sequence[Change]) -> None:
    async for change in in_turns(changes):
        if isinstance(change.after, Membership):
            await _refuse_taken(registry, change.after, change.before)


async def _refuse_taken(registry: Registry, member: Membership, before: KeyedRecord | None) -> None:
    """Refuse a user name or external identifier of another member.

    Also the user name of another member's account, or the address of another invitation, and for an invitation the
    address that is such a user name: both would be identified alike. What stays as it was is not looked at: whoever has
    a name that means two people can still be suspended. Source: D60, D68
    """
    wanted: list[tuple[str, *tuple[MemberCondition, ...]]] = []
    if member.user_name and member.user_name != getattr(before, "user_name", ""):
        alike = dict.fromkeys((member.user_name, fold_text(member.user_name)))
        wanted += [("user_name", ("any_user_name", "eq", each)) for each in alike]
        if "@" in member.user_name:
            wanted.append(("user_name", ("email", "eq", member.user_name), ("invited", "eq", "true")))
    if member.external_id and member.external_id != getattr(before, "external_id", ""):
        wanted.append(("external_id", ("external_id", "eq", member.external_id)))
    if member.invited and member.email and member.email != getattr(before, "email", ""):
        wanted.append(("email", ("any_user_name", "eq", member.email)))
    for name, *conditions in wanted:
        query = MemberQuery(entity_id=member.entity_id, conditions=tuple(conditions), limit=_SAME_NAME)
        _, found = await registry.provisioning.members(query)
        others = [each for each in found if each.membership.membership_id != member.membership_id]
        if name == "email":
            others = [each for each in others if canonical(each.user.user_name) == canonical(member.email)]
        if others:
            raise IdentifierConflict(name)


async def read_current(registry: Registry, changes: Sequence[Change]) -> dict[Kind, dict[Key, KeyedRecord]]:
    """Read the changed records, and those that they name.

    Raises StoreUnavailable. Source: D55, R-14, R-21
    """
    keys: defaultdict[Kind, set[Key]] = defaultdict(set)
    between: set[Key] = set()
    for change in changes:
        keys[change.kind].add(change.key)
        record = change.record
        for kind, key in keys_named(change.kind, change.key, msgspec.structs.asdict(record)):
            if kind != "user":  # the rules ask for the membership
                keys[kind].add(key)
        if isinstance(record, ThirdPartyAssignment):
            between.add((record.client_entity_id, record.entity_id, record.service_id))
    found: dict[Kind, dict[Key, KeyedRecord]] = {
        kind: dict(await registry.directory.read(RECORDS[kind], sorted(wanted))) for kind, wanted in keys.items()
    }
    for each in between:
        grants = await read_grants(registry.directory, each)
        found.setdefault("grant", {}).update({grant.key: grant for grant in grants})
    return found


def build_change_event(actor: Actor, change: Change, *, invited: Membership | None = None) -> AuditEvent:
    """Return the audit event of one change.

    Its object is the record's key. The store adds the members that differ from what it replaces. `invited` is the
    invitation of its person, whom the event names as they are known now. Source: D57, D68
    """
    thing = build_object(change)
    detail = {"taken_over": " ".join(sorted(set(change.taken.values())))} if change.taken else {}  # D65
    if invited is not None:
        detail |= name_invitation(invited)
    detail |= list_role_parts(change.record)
    action = change.action or find_decision(actor, change) or find_action(change)
    event = audit_event(actor, action, "/".join(change.key), entity_id=thing.entity_id, **detail)
    client_id = getattr(change.record, "client_id", "")
    return replace(event, client_id=client_id, other_entity_id=thing.other_entity_id)


def decide_for(change: Change, actor: Actor, side: AuthorisationSide) -> Change:
    """A change of a grant as a side's decision.

    If it is one, and the actor has no side of their own. Source: D56
    """
    return replace(change, action=find_decision(actor, change, side))


def find_decision(actor: Actor, change: Change, spoken_for: AuthorisationSide | None = None) -> AuditAction | None:
    """Return the action of one side of a grant.

    The actor's own side, else the one that is spoken for. None if the change is no decision of theirs. Source: D56
    """
    was, becomes = _grants(change)
    grant = becomes or was
    side = (side_of(actor, grant) if grant is not None else None) or spoken_for
    event = event_by(side, was, becomes) if side is not None else None
    if event is AuthorisationEvent.NARROW:
        return AuditAction.GRANT_UPDATE
    return AuditAction(f"grant.{event.value}") if event is not None else None


def find_action(change: Change) -> AuditAction:
    """Return the audit action of a change.

    If the change only turns a switch, the action is that of the switch; otherwise it follows from the kind of record
    and the verb. Source: D57
    """
    if is_invitation(change.before, change.after):
        return AuditAction.MEMBERSHIP_INVITE
    switch = SWITCHES.get(change.kind)
    if switch is not None and list(_list_differing(change)) == ["enabled"]:
        return switch[getattr(change.after, "enabled", False)]
    return ACTIONS[change.kind, change.verb]


def audit_event(actor: Actor, action: AuditAction, subject: str, *, entity_id: str = "", **detail: str) -> AuditEvent:
    """An event of an actor; `subject` is the object of the action.

    With an entity it stands in that entity's history. Of two entities, it says for which one an administrator acted.
    Source: D56, D57
    """
    if isinstance(actor, EntityAdministrator) and action.object_kind in _OF_TWO_ENTITIES:
        detail[ACTING_FOR] = actor.entity_id
    return AuditEvent(
        actor=actor.name,
        action=action,
        object=subject,
        entity_id=entity_id,
        request_id=actor.request_id,
        detail={**actor.detail, **detail},
    )


def build_object(change: Change) -> Object:
    """Return the object of a change.

    Without facts that have to be looked up. Source: D53, D56
    """
    members = frozenset(_list_differing(change)) if change.before and change.after else None
    return object_of(change.record, members=members, sides=sides(*_grants(change)))


def object_of(
    record: Any,  # noqa: ANN401 - of any kind
    *,
    members: frozenset[str] | None = None,
    sides: frozenset[AuthorisationSide] = frozenset(),
) -> Object:
    """Return a record as an object of access control. Source: D53, D56"""
    parties = getattr(record, "entity_id", ""), getattr(record, "client_entity_id", "")
    entity_id, other = reversed(parties) if isinstance(record, ThirdPartyGrant) else parties
    return Object(
        kind=KIND_OF[type(record)],  # type: ignore[arg-type]  # one of them
        entity_id=entity_id,
        other_entity_id=other,
        service_id=getattr(record, "service_id", ""),
        user_id=getattr(record, "user_id", ""),
        members=members,
        sides=sides,
    )


async def _build_request(
    registry: Registry, found: AuthorisedChanges, changes: Sequence[Change], asking: RequestDetails
) -> ChangeRequest:
    """A request for changes, with the names of its people now (D55, D68)."""
    actor, entity_id = found.actor, _find_entity(found)
    return ChangeRequest(
        request_id=f"{int(asking.now):08x}-{asking.unique}",
        entity_id=entity_id,
        requester=actor.name,
        bound_to=actor.entity_id if isinstance(actor, ApiClient) else "",
        changes=tuple(changes),
        reason=asking.reason,
        created_at=int(asking.now),
        people=await read_requested_people(registry, entity_id, changes, actor.name),
    )


def build_request_event(
    action: AuditAction, request: ChangeRequest, *, by: str, detail: dict[str, str] | None = None
) -> AuditEvent:
    """An event of a request, in the history of its entity. Source: D55, D57"""
    subject, entity_id = request.request_id, request.entity_id
    return AuditEvent(actor=by, action=action, object=subject, entity_id=entity_id, detail=detail or {})


def guard_records(changes: Iterable[Change]) -> Iterable[Precondition]:
    """Guards that the records which changes were planned on are unchanged. Source: D55"""
    for change in changes:
        yield Precondition(type(change.record), change.key, change.before)


def check_reason(reason: str) -> None:
    """Refuse a reason that is empty or too long. Raises Refused. Source: D55"""
    if not reason.strip():
        raise NoReason("reason: say why, for the approver")
    if not is_one_line(reason):
        raise Refused(phrase("reason: enter one line of at most {count} characters", count=MOST_REASON_CHARACTERS))


def require_reason(actor: Actor) -> None:
    """Refuse a command without a reason.

    Raises Refused. Source: D54
    """
    if isinstance(actor, CommandLine) and not actor.reason:
        raise Refused('say why, for the history of those concerned: `corpid --reason "…"` and then the command')


def is_of_entity(actor: Actor) -> bool:
    """Return whether an actor's changes may need approval.

    Operators, their files and their commands go without. Source: D55
    """
    return isinstance(actor, EntityAdministrator | ApiClient | ProvisioningToken | Person)


async def read_pages(
    directory: Directory, kind: type[R], where: Mapping[str, str], *, at_once: int
) -> AsyncIterator[list[R]]:
    """All rows of a kind by their keys.

    Raises StoreUnavailable. Source: D53
    """
    after: tuple[str, ...] = ()
    while rows := await directory.page(kind, where, after=after, limit=at_once):
        yield rows
        if len(rows) < at_once:
            return
        after = rows[-1].key


async def _end_clients(registry: Registry, actor: Actor, changes: Sequence[Change]) -> list[StoreChange]:
    """End the API clients of removed entities.

    The identifier of an entity can be used again (D59).
    """
    removed = {change.key[0] for change in changes if change.kind == "entity" and change.after is None}
    if not removed:
        return []
    ended = [
        Change(client, None)
        async for clients in read_pages(registry.directory, RegisteredApiClient, {}, at_once=_AT_ONCE)
        for client in clients
        if client.entity_id in removed
    ]
    return [replace(each, event=build_change_event(actor, each)) for each in ended]


async def _add_endings(registry: Registry, changes: Sequence[Change]) -> Sequence[Change]:
    """Add what ends with memberships. Raises Refused if they are too many."""
    ending = [row for change in changes for row in await plan_endings(registry, change)]
    if len(changes) + len(ending) > _MOST_NAMED:
        raise Refused(phrase("a request for approval can have at most {count} changes: split it", count=_MOST_NAMED))
    return (*ending, *changes)


async def _check_waiting(registry: Registry, actor: Actor, request: ChangeRequest) -> None:
    """Raise Refused if too many changes would wait with it.

    Of its requester, or of its entity. Those of others never keep an owner from a request, such as one to dismiss
    whoever made them.
    """
    waiting = [*await _read_waiting(registry, request.entity_id, now=request.created_at), request]
    if sum(len(each.changes) for each in waiting if each.requester == request.requester) > _MOST_NAMED:
        raise Refused(
            phrase(
                "at most {count} changes that one administrator requested can wait for approval: withdraw some first",
                count=_MOST_NAMED,
            )
        )
    is_owner = isinstance(actor, EntityAdministrator) and actor.level == "owner"
    if not is_owner and sum(len(each.changes) for each in waiting) > _MOST_WAITING:
        raise Refused(
            phrase(
                "at most {count} changes of an organisation can wait for approval: decide on some of them first",
                count=_MOST_WAITING,
            )
        )


def is_membership_end(change: Change) -> bool:
    """Return whether a change ends a membership. Source: D53"""
    return change.kind == "membership" and change.after is None


async def plan_endings(registry: Registry, change: Change) -> list[Change]:
    """The removal of everything that ends with a membership: roles and level.

    Nothing for another change. Raises StoreUnavailable. Source: D53
    """
    if not is_membership_end(change):
        return []
    directory, where = registry.directory, dict(zip(("user_id", "entity_id"), change.key, strict=True))
    return [
        *(Change(row, None) for row in await directory.page(ThirdPartyAssignment, where, limit=_MOST_ENDING)),
        *(Change(row, None) for row in await directory.page(Assignment, where, limit=_MOST_ENDING)),
        *(Change(row, None) for row in (await directory.read(Administrator, [change.key])).values()),
    ]


async def read_grants(directory: Directory, between: Sequence[str]) -> list[ThirdPartyGrant]:
    """The grants between two entities for a service.

    `between` are client entity, third party and service. Of a great many the first ones. Raises StoreUnavailable.
    Source: D56
    """
    where = dict(zip(("client_entity_id", "entity_id", "service_id"), between, strict=True))
    return await directory.page(ThirdPartyGrant, where, limit=_MOST_GRANTS)


async def add_facts(
    registry: Registry, actor: Actor, changes: Sequence[Change], objects: Sequence[Object]
) -> tuple[list[Object], list[StoreChange]]:
    """Return the objects with their facts, and guards of the write.

    An operator's command or file needs no facts. Raises access.Forbidden if an administrator is none any more, and
    StoreUnavailable. Source: D53, D54, D56, D60
    """
    covering = await _covering_grants(registry, changes)
    guards: list[StoreChange] = [*_guard_grants(actor, changes, covering)]
    if any(_takes_operator(change) for change in changes):
        guards.insert(0, LastOwnerInvariant())
    guards += await check_still_acting(registry, actor)
    guards += await _guard_invitations(registry, changes)
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
        fact, further = await _add_fact(registry, change, thing)
        found.append(fact)
        guards += further
    if isinstance(actor, DeploymentOperator):
        guards = [guard for guard in guards if not isinstance(guard, LastOwnerInvariant) or not guard.entity_id]
    return found, await in_thread_if_many(lambda: list(dict.fromkeys(guards)), len(guards))


async def _find_needing(
    registry: Registry, actor: Actor, changes: Sequence[Change], objects: Sequence[Object]
) -> tuple[list[Change], list[Precondition]]:
    """Return the changes that entities want approved, and guards of that.

    Raises StoreUnavailable. Source: D55
    """
    asked = [
        (change, thing, (entity_id,), (thing.service_id,))
        for change, thing in zip(changes, objects, strict=True)
        if change.kind in OF_ENTITIES and (change.before is not None or change.kind != "entity")
        for entity_id in _deciding_entities(actor, change, thing)
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


def _deciding_entities(actor: Actor, change: Change, thing: Object) -> tuple[str, ...]:
    """The entities whose decision a change is.

    The actor's own, if they act for one. Of an authorisation, that of the side which may make the change; both sides'
    if none may alone. Source: D55, D56
    """
    if actor.entity_id:
        return (actor.entity_id,)
    was, becomes = _grants(change)
    grant = becomes or was
    if grant is None:
        return (thing.entity_id,)
    deciding = thing.sides or frozenset(AuthorisationSide)
    parties = {AuthorisationSide.CLIENT_ENTITY: grant.client_entity_id, AuthorisationSide.THIRD_PARTY: grant.entity_id}
    return tuple(entity_id for side, entity_id in parties.items() if side in deciding)


async def _add_fact(registry: Registry, change: Change, thing: Object) -> tuple[Object, list[StoreChange]]:
    """Return an object with its facts, and guards of them."""
    if not thing.user_id:
        return thing, []
    key = (thing.user_id, thing.entity_id)
    owned = await _find_owners_taken(registry, change, key)
    held = await registry.directory.find(Administrator, *key)
    level: Level = held.level if held is not None else ""
    operates = await registry.directory.read(Operator, [(thing.user_id,)])
    belongs = await registry.directory.read(Membership, [key])
    with_facts = replace(
        thing,
        level=level,
        becomes=change.after.level if isinstance(change.after, Administrator) else "",
        belongs=bool(belongs),
        invites=is_invitation(change.before, change.after)
        and not await registry.directory.read(User, [(thing.user_id,)]),
        operates=bool(operates),
        parameters=await _has_parameters(registry, change, thing),
        takes_last_owner=any(
            [is_last_owner(each, await registry.directory.administrators(each.entity_id)) for each in owned]
        ),
    )
    return with_facts, [
        Precondition(Administrator, key, held),
        *(LastOwnerInvariant(each.entity_id) for each in owned),
    ]


async def _decline_requests(
    registry: Registry, actor: Actor, changes: Iterable[Change], approving: str
) -> list[StoreChange]:
    """Decline what waits for invitations that go to another address.

    It was asked for under the earlier one (D68).
    """
    ended: list[StoreChange] = []
    for change in changes:
        was, becomes = change.before, change.after
        if not is_redirection(was, becomes) or not isinstance(was, Membership) or not isinstance(becomes, Membership):
            continue
        for request in await _read_waiting(registry, was.entity_id, now=becomes.changed_at):
            is_about = any(each.key[0] == was.user_id for each in request.changes)
            if not is_about or request.request_id == approving:
                continue
            after = decide_request(request, Decision.DECLINE, by=SYSTEM, reason=str(REDIRECTED), now=becomes.changed_at)
            event = build_request_event(AuditAction.APPROVAL_DECLINE, request, by=SYSTEM)
            event = replace(event, request_id=actor.request_id)
            decision = Change(request, after, event)
            ended += [*guard_records([decision]), decision]
    return ended


async def _read_waiting(registry: Registry, entity_id: str, *, now: float) -> list[ChangeRequest]:
    """The requests of an entity that wait."""
    where = {"entity_id": entity_id, "state": ApprovalState.PENDING.value}
    return [
        row
        async for rows in read_pages(registry.directory, ChangeRequest, where, at_once=_AT_ONCE)
        for row in rows
        if state_at(row, now) is ApprovalState.PENDING
    ]


async def _check_approvers(registry: Registry, changes: Sequence[Change]) -> None:
    for change in changes:
        if step(change) > 0 and approvers(await registry.directory.administrators(change.key[0])) < APPROVERS:
            raise Refused(
                phrase("approvals: this needs two people who can approve: appoint another owner or administrator first")
            )


def _grants(change: Change) -> tuple[ThirdPartyGrant | None, ThirdPartyGrant | None]:
    was, becomes = change.before, change.after
    return (
        was if isinstance(was, ThirdPartyGrant) else None,
        becomes if isinstance(becomes, ThirdPartyGrant) else None,
    )


def _find_sign_outs(changes: Iterable[Change]) -> Iterable[SignOut]:
    """People to sign out: they lose a factor or their access."""
    for change in changes:
        was, becomes = change.before, change.after
        if isinstance(was, Credentials) and isinstance(becomes, Credentials) and was.factors != becomes.factors:
            yield SignOut(was.user_id)
        if isinstance(was, User) and isinstance(becomes, User) and was.enabled and not becomes.enabled:
            yield SignOut(was.user_id)


def _find_roles_under(actor: Actor, changes: Iterable[Change]) -> Iterable[RolesUnder]:
    """The roles that end with grants, by any actor (D56)."""
    for change in changes:
        if isinstance(change.before, ThirdPartyGrant) and change.after is None:
            event = audit_event(actor, ACTIONS["third-party row", "remove"], "", entity_id=change.before.entity_id)
            event = replace(event, other_entity_id=change.before.client_entity_id)
            yield RolesUnder(change.before, event, planned=change.seen is not None)


def _list_differing(change: Change) -> Iterable[str]:
    """Return the names of the members that a change modifies.

    There are none for a record that is added or removed.
    """
    names = change.after.__struct_fields__ if change.before and change.after else ()
    return (name for name in names if getattr(change.before, name) != getattr(change.after, name))


async def _covering_grants(registry: Registry, changes: Sequence[Change]) -> dict[Key, ThirdPartyGrant]:
    """Return accepted grants by the key of a role that each covers.

    The roles are those of third parties' people among the changes. A grant among the changes counts as what it becomes.
    """
    rows = [change.after for change in changes if isinstance(change.after, ThirdPartyAssignment)]
    if not rows:
        return {}
    written = {change.key for change in changes if change.kind == "grant"}
    held: defaultdict[Key, list[ThirdPartyGrant]] = defaultdict(list)
    for change in changes:
        if isinstance(change.after, ThirdPartyGrant):
            held[change.key[:3]].append(change.after)
    for between in dict.fromkeys((row.client_entity_id, row.entity_id, row.service_id) for row in rows):
        held[between] += [grant for grant in await read_grants(registry.directory, between) if grant.key not in written]
    covering = ((row, held[row.client_entity_id, row.entity_id, row.service_id]) for row in rows)
    return {row.key: grant for row, grants in covering for grant in grants if grant.covers(row)}


def _guard_grants(
    actor: Actor, changes: Sequence[Change], covering: Mapping[Key, ThirdPartyGrant]
) -> Iterable[Precondition]:
    """Return the grants that must still be as they were read.

    A file says what a grant becomes, whatever it was.
    """
    written = {change.key for change in changes if change.kind == "grant"}
    for change in changes:
        if isinstance(change.before, ThirdPartyGrant) and (
            change.after is None or not isinstance(actor, DirectoryFile)
        ):
            yield Precondition(ThirdPartyGrant, change.key, change.before)
    yield from dict.fromkeys(
        Precondition(ThirdPartyGrant, grant.key, grant) for grant in covering.values() if grant.key not in written
    )


async def _guard_invitations(registry: Registry, changes: Sequence[Change]) -> list[Precondition]:
    """Return the invitations of the people whose level or roles change.

    They are for whom the invitation goes to: another address meanwhile, and nothing is written (D68). Nobody is looked
    up whose membership is among the changes as a new one.
    """
    added = {change.key for change in changes if change.kind == "membership" and change.before is None}
    people = {change.key[:2] for change in changes if isinstance(change.record, CARRIED)}
    held = await registry.directory.read(Membership, sorted(people - added))
    return [Precondition(Membership, key, each) for key, each in held.items() if each.invited]


async def _find_owners_taken(registry: Registry, change: Change, key: tuple[str, str]) -> list[Administrator]:
    """Return the ownerships that a change takes, or leaves without effect."""
    owned = [each for each in await registry.directory.administered(key[0]) if each.level == "owner"]
    if _disables(change):
        return owned
    return [each for each in owned if each.key == key] if _takes_owner(change) else []


async def _has_parameters(registry: Registry, change: Change, thing: Object) -> bool:
    """Return whether a row has parameters, or its service defines some."""
    if getattr(change.record, "parameters", ()):
        return True
    found = await registry.directory.read(Service, [(thing.service_id,)]) if thing.service_id else {}
    return any(service.parameters for service in found.values())


def _moves_address(change: Change) -> bool:
    """Return whether links for recovery, or an invitation, would go elsewhere (D60, D61)."""
    was, becomes = change.before, change.after
    moved = isinstance(was, User) and isinstance(becomes, User) and was.email != becomes.email
    return moved or is_redirection(was, becomes)


def _takes_owner(change: Change) -> bool:
    if change.kind == "administrator":
        return not isinstance(change.after, Administrator) or change.after.level != "owner"
    return change.kind == "membership" and not getattr(change.after, "enabled", False)


def _takes_operator(change: Change) -> bool:
    was, becomes = change.before, change.after
    if isinstance(was, Operator):
        return was.level == "operator" and getattr(becomes, "level", "") != "operator"
    return _disables(change)


def _disables(change: Change) -> bool:
    """Return whether a person is disabled or removed."""
    was = change.before
    return isinstance(was, User) and was.enabled and not getattr(change.after, "enabled", False)


def _find_entity(found: AuthorisedChanges) -> str:
    """The entity whose administrators decide."""
    if len(found.changes) > MOST_CHANGES:
        raise Refused(phrase("a request for approval can have at most {count} changes: split it", count=MOST_CHANGES))
    of_each = [_deciding_entities(found.actor, *pair) for pair in zip(found.changes, found.objects, strict=True)]
    if any(len(entities) > 1 for entities in of_each):
        raise Refused(
            phrase(
                "an authorisation that is accepted at once needs the decision of both sides: offer it, then accept it"
            )
        )
    concerned = {entity_id for entities in of_each for entity_id in entities}
    if len(concerned) != 1 or not all(concerned):
        raise Refused(phrase("some of these changes need approval: send the changes of each entity separately"))
    return concerned.pop()
