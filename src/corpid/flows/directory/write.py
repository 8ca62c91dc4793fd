"""Writing of changes: each authorised, each with its audit event."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from corpid.flows.directory.administrators import add_facts, needing_approval
from corpid.flows.large import in_thread_if_many
from corpid.rules.audit_actions import INVITED_PERSON, AuditAction
from corpid.rules.audit_records import AuditEvent
from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.access import Forbidden, Object, authorise, on_self
from corpid.rules.directory.actors import SYSTEM, Actor, ApiClient, CommandLine, EntityAdministrator, ProvisioningToken
from corpid.rules.directory.approvals import REDIRECTED, ApprovalState, approvers, decide_request, state_at, step
from corpid.rules.directory.approvals import ApprovalEvent as Decision
from corpid.rules.directory.changes import AccessUnder, Delete, Precondition, RolesUnder, SignOut, Upsert
from corpid.rules.directory.changes import Change as StoreChange
from corpid.rules.directory.invitations import CARRIED, is_invitation, is_redirection, shown_invitation
from corpid.rules.directory.levels import APPROVERS
from corpid.rules.directory.plan import RECORDS, Change
from corpid.rules.directory.records import ChangeRequest, Entity, Membership, ThirdPartyGrant, User
from corpid.rules.directory.sections import KINDS
from corpid.rules.directory.third_parties import AuthorisationEvent, event_by, side_of, sides
from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.rules.oauth.records import Client
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from corpid.rules.directory.changes import Written
    from corpid.rules.directory.plan import Verb
    from corpid.rules.directory.sections import Kind
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


class Refused(Exception):
    """A command cannot be carried out.

    The text says why and what to do; further texts are lines that list something. Nothing was changed.
    """


class MembersRefused(Refused):
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
        known = [*seen, *(change.was or change.becomes for change in self.changes)]
        return {each.key: each for each in known if isinstance(each, Membership) and each.invited}


async def authorise_changes(
    registry: Registry, actor: Actor, changes: Sequence[Change], *, approving: str = ""
) -> AuthorisedChanges:
    """Authorise all changes.

    `approving` is the request for them, if it is being approved. Raises access.Forbidden if one of them is not allowed,
    Refused if approvals are turned on with nobody to give them, and StoreUnavailable. Source: SECURITY.md, D53,
    D55
    """
    plain = await in_thread_if_many(lambda: [object_of(change) for change in changes], len(changes))
    objects, guards = await add_facts(registry, actor, changes, plain)

    def allowed() -> None:
        for change, thing in zip(changes, objects, strict=True):
            authorise(actor, "delete" if change.verb == "remove" else "write", thing)

    await in_thread_if_many(allowed, len(changes))
    needing, seen = await needing_approval(registry, actor, changes, objects)
    if is_of_entity(actor):
        guards = await in_thread_if_many(partial(_distinct, [*guards, *seen]), len(guards))
        await _check_approvers(registry, changes)
    return AuthorisedChanges(
        actor=actor,
        changes=tuple(changes),
        objects=tuple(objects),
        guards=tuple(guards),
        needing=tuple(needing),
        ended=tuple(await _ended_requests(registry, actor, changes, approving)),
    )


async def _ended_requests(
    registry: Registry, actor: Actor, changes: Iterable[Change], approving: str
) -> list[StoreChange]:
    """Decline what waits for invitations that go to another address.

    It was asked for under the earlier one (D68).
    """
    ended: list[StoreChange] = []
    for change in changes:
        was, becomes = change.was, change.becomes
        if not is_redirection(was, becomes) or not isinstance(was, Membership) or not isinstance(becomes, Membership):
            continue
        for request in await _waiting(registry, was, now=becomes.changed_at):
            if request.request_id == approving:
                continue
            after = decide_request(request, Decision.DECLINE, by=SYSTEM, reason=str(REDIRECTED), now=becomes.changed_at)
            event = AuditEvent(
                actor=SYSTEM,
                action=AuditAction.APPROVAL_DECLINE,
                object=request.request_id,
                entity_id=request.entity_id,
                request_id=actor.request_id,
            )
            ended += [Precondition(ChangeRequest, request.key, request), Upsert(after, event)]
    return ended


async def _waiting(registry: Registry, invited: Membership, *, now: float) -> list[ChangeRequest]:
    """The requests about an invitation that wait."""
    where = {"entity_id": invited.entity_id, "state": ApprovalState.PENDING.value}
    found: list[ChangeRequest] = []
    after: tuple[str, ...] = ("",)
    while rows := await registry.directory.page(ChangeRequest, where, after=after, limit=_AT_ONCE):
        found += [row for row in rows if any(each.key[0] == invited.user_id for each in row.changes)]
        after = rows[-1].key
    return [row for row in found if state_at(row, now) is ApprovalState.PENDING]


def _distinct(guards: Iterable[StoreChange]) -> list[StoreChange]:
    return list(dict.fromkeys(guards))


async def _check_approvers(registry: Registry, changes: Sequence[Change]) -> None:
    for change in changes:
        if step(change) > 0 and approvers(await registry.directory.administrators(change.key[0])) < APPROVERS:
            raise Refused(
                phrase(
                    "approvals: two people have to be there who can approve: appoint another owner or administrator first"
                )
            )


def is_of_entity(actor: Actor) -> bool:
    """Return whether an actor's changes may need approval.

    Operators, their files and their commands go without. Source: D55
    """
    return isinstance(actor, EntityAdministrator | ApiClient | ProvisioningToken)


async def write(
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
    knows a more exact one than `action_of`. `summary` is an event about all changes, written with the last one. `seen`
    are records that the caller has decided on; `within` is awaited in the transaction of the last change. Raises
    access.Forbidden before anything is written, also for what needs approval (`approvals.submit` requests it), Refused,
    Conflict (LastOwnerRemoved if the last operator or owner would go, ChangedMeanwhile if what was decided on is no
    longer so), and StoreUnavailable. Source: SECURITY.md, D53, D55, D57
    """
    found = await authorise_changes(registry, actor, changes)
    if found.needing and is_of_entity(actor):
        needing = found.needing[0]
        raise Forbidden(actor, "delete" if needing.verb == "remove" else "write", needing.kind, NEEDS_APPROVAL)
    further = [each for each in seen if each not in found.guards]
    written = await in_thread_if_many(partial(record_changes, found, action=action), len(changes))
    await registry.directory.write([*written, *further], summary, within)


def record_changes(found: AuthorisedChanges, *, action: AuditAction | None = None, **detail: str) -> list[StoreChange]:
    """Return authorised changes for the store, each with its event, and guards.

    Each event has `detail`. Source: D54, D55, D57
    """
    needing = {(change.kind, change.key) for change in found.needing}
    invited = found.invited
    written = []
    for change, thing in zip(found.changes, found.objects, strict=True):
        event = change_event(found.actor, change, action, invited=invited.get(change.key[:2]))
        details = {**event.detail, **detail}
        if on_self(found.actor, thing):
            details["self"] = "true"
        if not is_of_entity(found.actor) and (change.kind, change.key) in needing:
            details["approval"] = "bypassed"
        written.append(_recorded(change, msgspec.structs.replace(event, detail=details)))
    under: list[StoreChange] = [*_roles_under(found.actor, found.changes), *_access_under(found.actor, found.changes)]
    return [*written, *_signed_out(found.changes), *under, *found.ended, *found.guards]


def with_reason(actor: Actor) -> None:
    """Refuse a command without a reason.

    Raises Refused. Source: D54
    """
    if isinstance(actor, CommandLine) and not actor.reason:
        raise Refused('say why, for the history of those concerned: `corpid --reason "…"` and then the command')


def change_event(
    actor: Actor, change: Change, action: AuditAction | None = None, *, invited: Membership | None = None
) -> AuditEvent:
    """Return the audit event of one change.

    Its object is the record's key. The store adds the members that differ from what it replaces. `invited` is the
    invitation of its person, whom the event names as they are known now. Source: D57, D68
    """
    thing = object_of(change)
    detail = dict(actor.detail)
    if change.taken:
        detail["taken_over"] = _from_whom(change)
    if invited is not None:
        detail[INVITED_PERSON] = shown_invitation(invited)
    return AuditEvent(
        actor=actor.name,
        action=action or _decision(actor, change) or action_of(change),
        object="/".join(change.key),
        client_id=change.key[0] if change.kind == "client" else "",
        entity_id=thing.entity_id,
        other_entity_id=thing.other_entity_id,
        request_id=actor.request_id,
        detail=detail,
    )


def _decision(actor: Actor, change: Change) -> AuditAction | None:
    """The action of a grant's side, if the actor speaks for one (D56)."""
    was, becomes = _grants(change)
    grant = becomes or was
    side = side_of(actor, grant) if grant is not None else None
    event = event_by(side, was, becomes) if side is not None else None
    return GRANT_ACTIONS[event] if event is not None else None


def _grants(change: Change) -> tuple[ThirdPartyGrant | None, ThirdPartyGrant | None]:
    was, becomes = change.was, change.becomes
    return (
        was if isinstance(was, ThirdPartyGrant) else None,
        becomes if isinstance(becomes, ThirdPartyGrant) else None,
    )


def action_of(change: Change) -> AuditAction:
    """Return the audit action of a change.

    If the change only turns a switch, the action is that of the switch; otherwise it follows from the kind of record
    and the verb. Source: D57
    """
    if is_invitation(change.was, change.becomes):
        return AuditAction.MEMBERSHIP_INVITE
    switch = SWITCHES.get(change.kind)
    if switch is not None and list(_differing(change)) == ["enabled"]:
        return switch[getattr(change.becomes, "enabled", False)]
    return ACTIONS[change.kind, change.verb]


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
    return msgspec.structs.replace(record, enabled=enabled)


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


def object_of(change: Change) -> Object:
    """Return the object of a change.

    Without facts that have to be looked up. Source: D53, D56
    """
    record = change.becomes or change.was
    parties = getattr(record, "entity_id", ""), getattr(record, "client_entity_id", "")
    entity_id, other = reversed(parties) if change.kind == "grant" else parties
    return Object(
        kind=change.kind,
        entity_id=entity_id,
        other_entity_id=other,
        service_id=getattr(record, "service_id", ""),
        user_id=getattr(record, "user_id", ""),
        members=frozenset(_differing(change)) if change.was and change.becomes else None,
        sides=sides(*_grants(change)),
    )


def _signed_out(changes: Iterable[Change]) -> Iterable[SignOut]:
    """People to sign out: they lose a factor or their access."""
    for change in changes:
        was, becomes = change.was, change.becomes
        if isinstance(was, Credentials) and isinstance(becomes, Credentials) and was.factors != becomes.factors:
            yield SignOut(was.user_id)
        if isinstance(was, User) and isinstance(becomes, User) and was.enabled and not becomes.enabled:
            yield SignOut(was.user_id)


def _roles_under(actor: Actor, changes: Iterable[Change]) -> Iterable[RolesUnder]:
    """The roles that end with grants, by any actor (D56)."""
    for change in changes:
        if isinstance(change.was, ThirdPartyGrant) and change.becomes is None:
            event = AuditEvent(
                actor=actor.name,
                action=ACTIONS["third-party row", "remove"],
                entity_id=change.was.entity_id,
                other_entity_id=change.was.client_entity_id,
                request_id=actor.request_id,
                detail=actor.detail,
            )
            yield RolesUnder(change.was, event, planned=change.seen is not None)


def _access_under(actor: Actor, changes: Iterable[Change]) -> Iterable[AccessUnder]:
    """Level and roles that end with the address of an invitation (D68)."""
    for change in changes:
        was = change.was
        if isinstance(was, Membership) and is_redirection(was, change.becomes):
            events: dict[type[Written], AuditEvent] = {
                record: AuditEvent(
                    actor=actor.name,
                    action=ACTIONS[kind, "remove"],
                    entity_id=was.entity_id,
                    request_id=actor.request_id,
                    detail={**actor.detail, INVITED_PERSON: shown_invitation(was)},
                )
                for kind, record in RECORDS.items()
                if record in CARRIED
            }
            yield AccessUnder(was, events)


def _from_whom(change: Change) -> str:
    """The previous writers of records that a file takes over (D65)."""
    return " ".join(sorted(set(change.taken.values())))


def _recorded(change: Change, event: AuditEvent) -> StoreChange:
    if change.becomes is not None:
        return Upsert(change.becomes, event, frozenset(change.taken), change.seen)  # type: ignore[arg-type]
    return Delete(change.was, event, change.seen)  # type: ignore[arg-type]


def _differing(change: Change) -> Iterable[str]:
    """Return the names of the members that a change modifies.

    There are none for a record that is added or removed.
    """
    names = change.becomes.__struct_fields__ if change.was and change.becomes else ()
    return (name for name in names if getattr(change.was, name) != getattr(change.becomes, name))
