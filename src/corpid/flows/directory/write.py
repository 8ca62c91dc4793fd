"""Changes of records: authorised, and written with their audit events, or requested.

`write_or_request` is for actors of entities: what needs the approval of another administrator becomes a request (D55).
`write_changes` is for everybody else, and refuses it. Both authorise every change, with facts that are looked up, and
write all of them with guards: what was decided on is looked at again in the transaction of the change, so that a right
which ends meanwhile gives nothing.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from msgspec.structs import replace

from corpid.flows.directory.actors import check_still_acting, is_last_owner
from corpid.flows.directory.person_names import read_requested_people
from corpid.flows.large import in_thread_if_many, in_turns
from corpid.rules.audit_actions import INVITED_PERSON, AuditAction
from corpid.rules.audit_records import AuditEvent
from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.access import Forbidden, Object, authorise, on_self
from corpid.rules.directory.actors import (
    SYSTEM,
    Actor,
    ApiClient,
    CommandLine,
    DeploymentOperator,
    DirectoryFile,
    EntityAdministrator,
    ProvisioningToken,
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
    state_at,
    step,
)
from corpid.rules.directory.approvals import ApprovalEvent as Decision
from corpid.rules.directory.changes import (
    AccessUnder,
    LastOwnerInvariant,
    Precondition,
    RolesUnder,
    SignOut,
    StoreChange,
)
from corpid.rules.directory.invitations import CARRIED, is_invitation, is_redirection, shown_invitation
from corpid.rules.directory.plan import APPROVERS
from corpid.rules.directory.records import (
    RECORDS,
    Administrator,
    Change,
    ChangeRequest,
    Entity,
    Membership,
    Operator,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.rules.directory.sections import KINDS
from corpid.rules.directory.third_parties import AuthorisationEvent, AuthorisationSide, event_by, side_of, sides
from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.rules.oauth.records import Client
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence

    from corpid.rules.directory.access import Level
    from corpid.rules.directory.changes import Written
    from corpid.rules.directory.document import Key
    from corpid.rules.directory.records import Verb
    from corpid.rules.directory.sections import Kind
    from corpid.stores.sql.directory import Directory, L
    from corpid.stores.sql.registry import Registry

NEEDS_APPROVAL: Final = phrase("this needs the approval of another administrator")
S = TypeVar("S", Client, Entity, RegisteredApiClient, User)
_NOUNS: Final[Mapping[Kind, str]] = {"third-party row": "third_party_assignment"}
"""of kinds whose name is no noun of an action"""
_VERBS: Final[Mapping[Verb, str]] = {"add": "add", "change": "update", "remove": "remove"}
ACTIONS: Final[Mapping[tuple[Kind, Verb], AuditAction]] = {
    (kind, verb): AuditAction(f"{_NOUNS.get(kind, kind)}.{word}") for kind in KINDS for verb, word in _VERBS.items()
}
SWITCHES: Final[Mapping[Kind, tuple[AuditAction, AuditAction]]] = {
    "client": (AuditAction.CLIENT_DISABLE, AuditAction.CLIENT_ENABLE),
    "entity": (AuditAction.ENTITY_DISABLE, AuditAction.ENTITY_ENABLE),
    "user": (AuditAction.USER_DISABLE, AuditAction.USER_ENABLE),
}
"""off and on, of the kinds whose switch has actions of its own"""
GRANT_ACTIONS: Final[Mapping[AuthorisationEvent, AuditAction]] = {
    AuthorisationEvent.OFFER: AuditAction.GRANT_OFFER,
    AuthorisationEvent.ACCEPT: AuditAction.GRANT_ACCEPT,
    AuthorisationEvent.DECLINE: AuditAction.GRANT_DECLINE,
    AuthorisationEvent.WITHDRAW: AuditAction.GRANT_WITHDRAW,
    AuthorisationEvent.NARROW: AuditAction.GRANT_UPDATE,
    AuthorisationEvent.END: AuditAction.GRANT_END,
}
"""of a decision by one side of a grant"""
REMOVALS: Final[Mapping[Kind, tuple[AuditAction, ...]]] = {
    **{kind: (ACTIONS[kind, "remove"],) for kind in KINDS},
    "grant": (
        ACTIONS["grant", "remove"],
        *(
            GRANT_ACTIONS[event]
            for event in (AuthorisationEvent.DECLINE, AuthorisationEvent.WITHDRAW, AuthorisationEvent.END)
        ),
    ),
}
"""the actions after which there is no such record any more"""
_AT_ONCE: Final = 200
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


async def write_or_request(
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

    Returns the request, None if the changes were written. `reason` is for the approver, `now` in epoch seconds;
    `unique` makes the identifier of a request, with the moment; `seen` as in `write_changes`. Raises access.Forbidden
    (also for provisioning tokens, which request nothing), NoReason, Refused, Conflict, StoreUnavailable. Source: D55,
    D59, D60
    """
    found = await authorise_changes(registry, actor, changes)
    if not is_of_entity(actor) or not found.needing:
        await registry.directory.write([*record_changes(found), *(each for each in seen if each not in found.guards)])
        return None
    if isinstance(actor, ProvisioningToken):
        raise Forbidden(actor, "write", found.needing[0].kind, phrase("this is read-only here: it needs approval"))
    check_reason(reason)
    request = await build_request(
        registry, actor.name, _find_entity(found), changes, reason=reason, now=now, unique=unique,
        bound_to=actor.entity_id if isinstance(actor, ApiClient) else "",
    )  # fmt: skip
    event = build_request_event(AuditAction.APPROVAL_REQUEST, request, by=actor.name, detail=actor.detail)
    guards = dict.fromkeys(
        [*found.guards, *guard_records(changes), *seen, Precondition(ChangeRequest, request.key, None)]
    )
    await registry.directory.write([*guards, Change(None, request, event)])
    return request


async def write_changes(
    registry: Registry,
    actor: Actor,
    changes: Sequence[Change],
    *,
    action: AuditAction | None = None,
    summary: AuditEvent | None = None,
    seen: Sequence[Precondition] = (),
    within: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Authorise all changes and write them, each with an audit event.

    Each event is written in the transaction of its change. `action` is the action of the only change, if a command
    knows a more exact one than `find_action`. `summary` is an event about all changes, written with the last one.
    `seen` are records that the caller has decided on; `within` is awaited in the transaction of the last change. Raises
    access.Forbidden before anything is written, also for what needs approval (`write_or_request` requests it), Refused,
    Conflict (LastOwnerRemoved if the last operator or owner would go, ChangedMeanwhile if what was decided on is no
    longer so), and StoreUnavailable. Source: SECURITY.md, D53, D55, D57
    """
    found = await authorise_without_approval(registry, actor, changes)
    further = [each for each in seen if each not in found.guards]
    written = await in_thread_if_many(partial(record_changes, found, action=action), len(changes))
    await registry.directory.write([*written, *further], summary, within)


async def authorise_changes(
    registry: Registry, actor: Actor, changes: Sequence[Change], *, approving: str = ""
) -> AuthorisedChanges:
    """Authorise all changes.

    `approving` is the request for them, if it is being approved. Raises access.Forbidden if one of them is not allowed,
    Refused if approvals are turned on with nobody to give them, and StoreUnavailable. Source: SECURITY.md, D53,
    D55
    """
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


async def authorise_without_approval(registry: Registry, actor: Actor, changes: Sequence[Change]) -> AuthorisedChanges:
    """Authorise changes that the actor may make alone.

    Raises as `authorise_changes`, and access.Forbidden for what needs approval. Source: D55
    """
    found = await authorise_changes(registry, actor, changes)
    if found.needing and is_of_entity(actor):
        needing = found.needing[0]
        raise Forbidden(actor, "delete" if needing.verb == "remove" else "write", needing.kind, NEEDS_APPROVAL)
    return found


def record_changes(found: AuthorisedChanges, *, action: AuditAction | None = None, **detail: str) -> list[StoreChange]:
    """Return authorised changes for the store, each with its event, and guards.

    Each event has `detail`. Source: D54, D55, D57
    """
    needing = {(change.kind, change.key) for change in found.needing}
    invited = found.invited
    written: list[StoreChange] = []
    for change, thing in zip(found.changes, found.objects, strict=True):
        event = build_change_event(found.actor, change, action, invited=invited.get(change.key[:2]))
        details = {**event.detail, **detail}
        if on_self(found.actor, thing):
            details["self"] = "true"
        if not is_of_entity(found.actor) and (change.kind, change.key) in needing:
            details["approval"] = "bypassed"
        written.append(replace(change, event=replace(event, detail=details)))
    under: list[StoreChange] = [
        *_find_roles_under(found.actor, found.changes),
        *_find_access_under(found.actor, found.changes),
    ]
    return [*written, *_find_sign_outs(found.changes), *under, *found.ended, *found.guards]


def build_change_event(
    actor: Actor, change: Change, action: AuditAction | None = None, *, invited: Membership | None = None
) -> AuditEvent:
    """Return the audit event of one change.

    Its object is the record's key. The store adds the members that differ from what it replaces. `invited` is the
    invitation of its person, whom the event names as they are known now. Source: D57, D68
    """
    thing = build_object(change)
    detail = {"taken_over": " ".join(sorted(set(change.taken.values())))} if change.taken else {}  # D65
    if invited is not None:
        detail |= name_invitation(invited)
    action = action or find_decision(actor, change) or find_action(change)
    event = audit_event(actor, action, "/".join(change.key), entity_id=thing.entity_id, **detail)
    client_id = change.key[0] if change.kind == "client" else ""
    return replace(event, client_id=client_id, other_entity_id=thing.other_entity_id)


def find_decision(actor: Actor, change: Change, spoken_for: AuthorisationSide | None = None) -> AuditAction | None:
    """Return the action of one side of a grant.

    The actor's own side, else the one that is spoken for. None if the change is no decision of theirs. Source: D56
    """
    was, becomes = _grants(change)
    grant = becomes or was
    side = (side_of(actor, grant) if grant is not None else None) or spoken_for
    event = event_by(side, was, becomes) if side is not None else None
    return GRANT_ACTIONS[event] if event is not None else None


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

    With an entity it stands in that entity's history. Source: D57
    """
    return AuditEvent(
        actor=actor.name,
        action=action,
        object=subject,
        entity_id=entity_id,
        request_id=actor.request_id,
        detail={**actor.detail, **detail},
    )


def name_invitation(membership: Membership) -> dict[str, str]:
    """Return whom an invitation is for, as an event's detail. Source: D68"""
    return {INVITED_PERSON: shown_invitation(membership)} if membership.invited else {}


def build_object(change: Change) -> Object:
    """Return the object of a change.

    Without facts that have to be looked up. Source: D53, D56
    """
    record = change.record
    parties = getattr(record, "entity_id", ""), getattr(record, "client_entity_id", "")
    entity_id, other = reversed(parties) if change.kind == "grant" else parties
    return Object(
        kind=change.kind,
        entity_id=entity_id,
        other_entity_id=other,
        service_id=getattr(record, "service_id", ""),
        user_id=getattr(record, "user_id", ""),
        members=frozenset(_list_differing(change)) if change.before and change.after else None,
        sides=sides(*_grants(change)),
    )


async def build_request(
    registry: Registry,
    requester: str,
    entity_id: str,
    changes: Sequence[Change],
    *,
    reason: str,
    now: float,
    unique: str,
    bound_to: str = "",
) -> ChangeRequest:
    """A request for changes of an entity, with its people's names now.

    `requester` is named as in the audit; `bound_to` is the entity of an API client. The rest as in `write_or_request`.
    Raises StoreUnavailable. Source: D55, D68
    """
    return ChangeRequest(
        request_id=f"{int(now):08x}-{unique}",
        entity_id=entity_id,
        requester=requester,
        bound_to=bound_to,
        changes=tuple(changes),
        reason=reason,
        created_at=int(now),
        people=await read_requested_people(registry, entity_id, changes, requester),
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
        yield Precondition(RECORDS[change.kind], change.key, change.before)  # type: ignore[arg-type]


def check_reason(reason: str) -> None:
    """Refuse a reason that is empty or too long. Raises Refused. Source: D55"""
    if not reason.strip():
        raise NoReason("reason: say why, for the approver")
    if len(reason) > MOST_REASON_CHARACTERS or not reason.isprintable():
        raise Refused(phrase("reason: write one line of at most {count} characters", count=MOST_REASON_CHARACTERS))


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
    return isinstance(actor, EntityAdministrator | ApiClient | ProvisioningToken)


async def read_pages(
    directory: Directory, kind: type[L], where: Mapping[str, str], *, width: int, at_once: int
) -> AsyncIterator[list[L]]:
    """All rows of a kind by their keys, which have `width` parts.

    Raises StoreUnavailable. Source: D53
    """
    after: tuple[str, ...] = ("",) * width
    while rows := await directory.page(kind, where, after=after, limit=at_once):
        yield rows
        if len(rows) < at_once:
            return
        after = rows[-1].key


async def read_grants(directory: Directory, between: Sequence[str]) -> list[ThirdPartyGrant]:
    """The grants between two entities for a service.

    `between` are client entity, third party and service. Of a great many the first ones. Raises StoreUnavailable.
    Source: D56
    """
    where = dict(zip(("client_entity_id", "entity_id", "service_id"), between, strict=True))
    return await directory.page(ThirdPartyGrant, where, after=("",) * 6, limit=_MOST_GRANTS)


def switch_record(record: S, described: str, *, enabled: bool) -> S:
    """The record enabled or disabled.

    Raises Refused when it is so already. Source: D50
    """
    if record.enabled == enabled:
        raise Refused(
            phrase("the {thing} is enabled already", thing=described)
            if enabled
            else phrase("the {thing} is disabled already", thing=described)
        )
    return replace(record, enabled=enabled)


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

    If the actor is an administrator, whose entity that is follows from the actor, else from each change. Raises
    StoreUnavailable. Source: D55
    """
    acting_for = getattr(actor, "entity_id", "")
    asked = [
        (change, thing, (acting_for or thing.entity_id,), (thing.service_id,))
        for change, thing in zip(changes, objects, strict=True)
        if change.kind in OF_ENTITIES and (change.before is not None or change.kind != "entity")
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


async def _add_fact(registry: Registry, change: Change, thing: Object) -> tuple[Object, list[StoreChange]]:
    """Return an object with its facts, and guards of them."""
    if not thing.user_id:
        return thing, []
    key = (thing.user_id, thing.entity_id)
    owned = await _find_owners_taken(registry, change, key)
    held = (await registry.directory.read(Administrator, [key])).get(key)
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
        for request in await _list_waiting(registry, was, now=becomes.changed_at):
            if request.request_id == approving:
                continue
            after = decide_request(request, Decision.DECLINE, by=SYSTEM, reason=str(REDIRECTED), now=becomes.changed_at)
            event = build_request_event(AuditAction.APPROVAL_DECLINE, request, by=SYSTEM)
            event = replace(event, request_id=actor.request_id)
            ended += [Precondition(ChangeRequest, request.key, request), Change(None, after, event)]
    return ended


async def _list_waiting(registry: Registry, invited: Membership, *, now: float) -> list[ChangeRequest]:
    """The requests about an invitation that wait."""
    where = {"entity_id": invited.entity_id, "state": ApprovalState.PENDING.value}
    return [
        row
        async for rows in read_pages(registry.directory, ChangeRequest, where, width=1, at_once=_AT_ONCE)
        for row in rows
        if any(each.key[0] == invited.user_id for each in row.changes) and state_at(row, now) is ApprovalState.PENDING
    ]


async def _check_approvers(registry: Registry, changes: Sequence[Change]) -> None:
    for change in changes:
        if step(change) > 0 and approvers(await registry.directory.administrators(change.key[0])) < APPROVERS:
            raise Refused(
                phrase(
                    "approvals: two people have to be there who can approve: appoint another owner or administrator first"
                )
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


def _find_access_under(actor: Actor, changes: Iterable[Change]) -> Iterable[AccessUnder]:
    """Level and roles that end with the address of an invitation (D68)."""
    for change in changes:
        was = change.before
        if isinstance(was, Membership) and is_redirection(was, change.after):
            named = name_invitation(was)
            events: dict[type[Written], AuditEvent] = {
                record: audit_event(actor, ACTIONS[kind, "remove"], "", entity_id=was.entity_id, **named)
                for kind, record in RECORDS.items()
                if record in CARRIED
            }
            yield AccessUnder(was, events)


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
        raise Refused(phrase("a request for approval has at most {count} changes: make several", count=MOST_CHANGES))
    concerned = {getattr(found.actor, "entity_id", "") or thing.entity_id for thing in found.objects}
    if len(concerned) != 1 or not all(concerned):
        raise Refused(phrase("some of this needs approval: send the changes of each entity on their own"))
    return concerned.pop()
