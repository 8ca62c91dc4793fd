"""Audit events, the entries made of them, and queries of these (D57)."""

from __future__ import annotations

from typing import Literal

import msgspec


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A security event, written in the transaction of its change.

    The store adds members before and after: it is what sees the record that is replaced. Source: D57
    """

    actor: str
    """a kind of `actors.ACTOR_KINDS`, and a name after a colon if it has one, e.g. `user:{user_id}`"""
    action: str
    """noun.verb, e.g. `client.disable`, `sign_in.complete`, `key.rotate`"""
    object: str = ""
    client_id: str = ""
    entity_id: str = ""
    other_entity_id: str = ""
    """the other entity of an event about two: an authorisation of a third party, and roles under it (D56)"""
    outcome: Literal["ok", "refused"] = "ok"
    request_id: str = ""
    detail: dict[str, str] = msgspec.field(default_factory=dict)


class AuditEntry(AuditEvent, frozen=True, kw_only=True):
    """An event as it was written."""

    number: int
    at: int
    before: dict[str, object] = msgspec.field(default_factory=dict)
    """members of the changed record, as they may be shown; empty if it was added"""
    after: dict[str, object] = msgspec.field(default_factory=dict)
    erased: bool = False
    """whether the entry had details that were erased: addresses, personal members"""


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions on entries; those that are not set fit every one."""

    actor: str = ""
    user_id: str = ""
    """the actor or the object"""
    entity_id: str = ""
    client_id: str = ""
    actions: tuple[str, ...] = ()
    """any of these; empty: every action"""
    object: str = ""
    since: int = 0
    """epoch seconds"""
    before: int = 0
    """entries of lower numbers; 0: of any"""


class AuditPart(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the entries that fit, the latest first."""

    entries: list[AuditEntry]
    before: int
    """the number before which to go on; 0: there is no more"""


class StoredEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as it is stored, with its details."""

    row: dict[str, str | int]
    """column → value"""
    salt: str | None
    """None, as `detail`: it has no details, or they were erased"""
    detail: str | None
