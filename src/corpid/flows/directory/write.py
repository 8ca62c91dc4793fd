"""Writing of changes: each authorised, each with its audit event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from corpid.flows.directory.administrators import considered
from corpid.ports import AuditEvent, Delete, SignOut, Upsert
from corpid.rules.audit_actions import AuditAction
from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.access import Object, authorise, on_self
from corpid.rules.directory.records import Entity, User
from corpid.rules.directory.sections import KINDS
from corpid.rules.oauth.records import Client

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from corpid.ports import Change as StoreChange
    from corpid.ports import Registry
    from corpid.rules.directory.actors import Actor
    from corpid.rules.directory.plan import Change, Verb
    from corpid.rules.directory.sections import Kind

S = TypeVar("S", Client, Entity, User)

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


class Refused(Exception):
    """A command cannot be carried out.

    The text says why and what to do; further texts are lines that list something. Nothing was changed.
    """


async def write(
    registry: Registry,
    actor: Actor,
    changes: Sequence[Change],
    *,
    action: AuditAction | None = None,
    summary: AuditEvent | None = None,
) -> None:
    """Authorise all changes and write them, each with an audit event.

    Each event is written in the transaction of its change. `action` is the action of the only change, if a command
    knows a more exact one than `action_of`. `summary` is an event about all changes, written with the last
    one. Raises access.Forbidden before anything is written, Conflict (NobodyRemains if
    the last operator or owner would go, ChangedMeanwhile if what was decided on is no longer so), and StoreUnavailable.
    Source: DESIGN "Security", D53, D57
    """
    objects, guards = await considered(registry, actor, changes, [_object(change) for change in changes])
    for change, thing in zip(changes, objects, strict=True):
        authorise(actor, "delete" if change.verb == "remove" else "write", thing)
    recorded = [
        _recorded(change, _marked(change_event(actor, change, action), own=on_self(actor, thing)))
        for change, thing in zip(changes, objects, strict=True)
    ]
    await registry.directory.write([*recorded, *_signed_out(changes), *guards], summary)


def _marked(event: AuditEvent, *, own: bool) -> AuditEvent:
    """Mark an owner's change of their own (D54)."""
    return msgspec.structs.replace(event, detail={**event.detail, "self": "true"}) if own else event


def change_event(actor: Actor, change: Change, action: AuditAction | None = None) -> AuditEvent:
    """Return the audit event of one change.

    Its object is the record's key. The store adds the members that differ from what it replaces. Source: D57
    """
    thing = _object(change)
    return AuditEvent(
        actor=actor.name,
        action=action or action_of(change),
        object="/".join(change.key),
        client_id=change.key[0] if change.kind == "client" else "",
        entity_id=thing.entity_id,
        other_entity_id=thing.other_entity_id,
        detail={**actor.detail, **({"taken_over": _from_whom(change)} if change.taken else {})},
    )


def action_of(change: Change) -> AuditAction:
    """Return the audit action of a change.

    If the change only turns a switch, the action is that of the switch; otherwise it follows from the kind of record
    and the verb. Source: D57
    """
    switch = SWITCHES.get(change.kind)
    if switch is not None and list(_differing(change)) == ["enabled"]:
        return switch[getattr(change.becomes, "enabled", False)]
    return ACTIONS[change.kind, change.verb]


def switched(record: S, described: str, *, enabled: bool) -> S:
    """The record enabled or disabled.

    Raises Refused when it is so already. Source: D50
    """
    if record.enabled == enabled:
        raise Refused(f"the {described} is {'enabled' if enabled else 'disabled'} already")
    return msgspec.structs.replace(record, enabled=enabled)


def audit_event(actor: Actor, action: AuditAction, subject: str, **detail: str) -> AuditEvent:
    """An event of an actor; `subject` is what was acted on. Source: DESIGN, Security."""
    return AuditEvent(actor=actor.name, action=action, object=subject, detail={**actor.detail, **detail})


def _object(change: Change) -> Object:
    record = change.becomes or change.was
    sides = getattr(record, "entity_id", ""), getattr(record, "client_entity_id", "")
    entity_id, other = reversed(sides) if change.kind == "grant" else sides
    return Object(
        kind=change.kind,
        entity_id=entity_id,
        other_entity_id=other,
        service_id=getattr(record, "service_id", ""),
        user_id=getattr(record, "user_id", ""),
        members=frozenset(_differing(change)) if change.was and change.becomes else None,
    )


def _signed_out(changes: Iterable[Change]) -> Iterable[SignOut]:
    """People to sign out: they lose a factor or their access.

    Source: D44, D45, D50
    """
    for change in changes:
        was, becomes = change.was, change.becomes
        if isinstance(was, Credentials) and isinstance(becomes, Credentials) and was.factors != becomes.factors:
            yield SignOut(was.user_id)
        if isinstance(was, User) and isinstance(becomes, User) and was.enabled and not becomes.enabled:
            yield SignOut(was.user_id)


def _from_whom(change: Change) -> str:
    """The actors that had written what a file takes over (D65)."""
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
