"""Changes of the registry's records, and the conflicts that refuse them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from corpid.rules.audit_actions import ROLE_PARTS
from corpid.rules.audit_records import AuditEvent
from corpid.rules.directory.records import (
    RECORDS,
    Assignment,
    Change,
    Entity,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.rules.fields import KeyedRecord
from corpid.rules.oauth.records import Client


class SignOut(msgspec.Struct, frozen=True):
    """End a person's sessions and the links for setting their factors.

    All of them end with the last change of that person's record or credentials, in the same transaction.
    """

    user_id: str


class Precondition(msgspec.Struct, frozen=True):
    """A record that a decision was made on.

    If it is no longer as it was read, nothing is written.
    """

    kind: type[KeyedRecord]
    key: tuple[str, ...]
    record: KeyedRecord | None
    """None: there was none"""


class LastOwnerInvariant(msgspec.Struct, frozen=True):
    """A person with all rights who must remain after the changes (D53, D54)."""

    entity_id: str = ""
    """an owner of this entity; empty: an operator of the deployment"""


class RolesUnder(msgspec.Struct, frozen=True):
    """Roles of a third party's people that end with the removed grant (D56).

    They are read after the removal, in its transaction, so that one which was given meanwhile ends, too.
    """

    grant: ThirdPartyGrant
    event: AuditEvent
    """of each of them, without its object"""
    planned: bool = False
    """whether the changes have those that are to end: if there is another one, nothing is written"""


class Accept(msgspec.Struct, frozen=True):
    """Move an invited membership to the account that accepts it.

    Its level and roles go with it, and the placeholder ends. If the invitation is no longer as it was read, or the
    person belongs to the entity by then, nothing is written. Source: D60
    """

    invited: Membership
    becomes: Membership
    event: AuditEvent


StoreChange = Change | SignOut | Precondition | LastOwnerInvariant | RolesUnder | Accept


def list_role_parts(record: KeyedRecord) -> dict[str, str]:
    """The details that tell roles and authorisations apart whose parts have slashes. Source: D57"""
    if not isinstance(record, Assignment | ThirdPartyAssignment | ThirdPartyGrant) or not any(
        "/" in each for each in record.key
    ):
        return {}
    return {name: value for name in ROLE_PARTS if (value := getattr(record, name))}


class Conflict(Exception):
    """A change that the registry's rules refuse.

    The text says which and why. Its transaction is rolled back.
    """


class NameTaken(Conflict):
    """Another user has this user name, after PRECIS mapping (D51)."""


class MemberNameTaken(Conflict):
    """Another member of the entity has this user name (D60)."""


class ExternalIdTaken(Conflict):
    """Another member of the entity has this external identifier (D60)."""


class NameRefused(Conflict):
    """The user name is empty or has characters no name has.

    Source: D51
    """


class MissingReference(Conflict):
    """The record names an entity, user, membership or service that is missing."""


class ChangedMeanwhile(Conflict):
    """A record that the decision was made on has changed since."""


class LastOwnerRemoved(Conflict):
    """The last owner of an entity, or the last operator, would go (D53, D54)."""


def encode_changes(changes: Iterable[Change]) -> bytes:
    """Changes without their events, in a form that every version reads. Source: D55"""
    return msgspec.json.encode([
        {"verb": each.verb, "kind": each.kind, "key": each.key, "was": each.before, "becomes": each.after}
        for each in changes
    ])  # fmt: skip


def decode_changes(text: str) -> tuple[Change, ...]:
    """The changes of a text that `encode_changes` gave. Source: D55"""

    def read(kind: str, members: dict[str, object] | None) -> Any:  # noqa: ANN401 - a record of this kind
        return None if members is None else msgspec.convert(members, {**RECORDS, "client": Client}[kind])

    kept = msgspec.json.decode(text)
    return tuple(Change(read(each["kind"], each["was"]), read(each["kind"], each["becomes"])) for each in kept)


_UNDOABLE: Final = (Assignment, ThirdPartyAssignment, Membership, Entity, Service, User, Client)


def is_undoable(change: Change) -> bool:
    """Return whether a change may be undone.

    Not if it is about a level, a token, factors, what needs approval, an authorisation of a third party, or where
    e-mails go; nor if a membership begins or ends. Source: D80
    """
    before, after = change.before, change.after
    if isinstance(change.record, Assignment | ThirdPartyAssignment):
        return True
    if before is None or after is None or not isinstance(after, _UNDOABLE):
        return False
    decisive = ("approvals", "approval_required", "email")
    return all(getattr(before, name, None) == getattr(after, name, None) for name in decisive)
