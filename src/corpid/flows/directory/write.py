"""Writing of changes: each authorised, all with an audit event."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from corpid.ports import AuditEvent, Delete, SignOut, Upsert
from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.access import Actor, Object, authorise
from corpid.rules.directory.records import Entity, User
from corpid.rules.oauth.records import Client

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from corpid.ports import Change as StoreChange
    from corpid.ports import Registry
    from corpid.rules.directory.plan import Change

S = TypeVar("S", Client, Entity, User)


class Refused(Exception):
    """A command cannot be carried out; the text says why and what to do. Nothing was changed."""


async def write(registry: Registry, actor: Actor, changes: Sequence[Change], event: AuditEvent) -> None:
    """Authorise every change and write them all; the event goes with the last of them.

    Raises access.Forbidden before anything is written, StoreUnavailable. DESIGN, Security.
    """
    for change in changes:
        authorise(actor, "delete" if change.verb == "remove" else "write", _object(change))
    await registry.directory.write([*_store_changes(changes), *_signed_out(changes)], event)


def switched(record: S, described: str, *, enabled: bool) -> S:
    """The record enabled or disabled. Raises Refused when it is so already. Source: D50"""
    if record.enabled == enabled:
        raise Refused(f"the {described} is {'enabled' if enabled else 'disabled'} already")
    return msgspec.structs.replace(record, enabled=enabled)


def audit_event(actor: Actor, action: str, subject: str, **detail: str) -> AuditEvent:
    """An event of an actor; `subject` is what was acted on. Source: DESIGN, Security."""
    return AuditEvent(actor=actor.name, action=action, object=subject, detail=detail)


def _object(change: Change) -> Object:
    record = change.becomes or change.was
    entity_id = getattr(record, "client_entity_id" if change.kind == "grant" else "entity_id", "")
    return Object(kind=change.kind, entity_id=entity_id, user_id=getattr(record, "user_id", ""))


def _signed_out(changes: Iterable[Change]) -> Iterable[SignOut]:
    """People to sign out: those who lose a factor or their access (D44, D45, D50)."""
    for change in changes:
        was, becomes = change.was, change.becomes
        if isinstance(was, Credentials) and isinstance(becomes, Credentials) and was.factors != becomes.factors:
            yield SignOut(was.user_id)
        if isinstance(was, User) and isinstance(becomes, User) and was.enabled and not becomes.enabled:
            yield SignOut(was.user_id)


def _store_changes(changes: Iterable[Change]) -> Iterable[StoreChange]:
    for change in changes:
        if change.becomes is not None:
            yield Upsert(change.becomes)  # type: ignore[arg-type]
        elif change.was is not None:
            yield Delete(change.was)  # type: ignore[arg-type]
