"""Undoing what a person has just changed, for ten minutes (D80).

What was changed last is kept in the transient store, encrypted, one of each browser. Undoing it is a new change by the
same person, authorised and approved as of now, which rests on the records as the first one has left them, and on the
people concerned being those who were meant (D68).
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from corpid.flows import namespaces
from corpid.flows.directory.person_names import digest_names, read_requested_people
from corpid.flows.directory.write import IdentifierConflict, Refused, RequestDetails, write_changes
from corpid.flows.encrypted_values import decrypt_value, encrypt_value
from corpid.jose.encoding import MalformedToken
from corpid.rules.directory.records import (
    Assignment,
    Change,
    ChangedMeanwhile,
    ChangeRequest,
    MemberNameTaken,
    Membership,
    Precondition,
    ThirdPartyAssignment,
    decode_changes,
    encode_changes,
    is_undoable,
)
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.flows.namespaces import Entry
    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.access import DeploymentOperator, EntityAdministrator
    from corpid.rules.fields import KeyedRecord

_KIND: Final = "undo"
_MOST: Final = 200
"""changes that one transaction undoes"""
_MOST_CHARACTERS: Final = 65536
"""of what is kept: some hundred roles"""
_ROWS: Final = (Assignment, ThirdPartyAssignment)
_NAME_CHARACTERS: Final = 16
"""of what names a change that is kept"""


class _Kept(msgspec.Struct, frozen=True):
    """The last change, and the people whom it concerns.

    These are a digest of how they were known then (D68).
    """

    changes: msgspec.Raw
    people: str


class NothingToUndo(Refused):
    """The last change cannot be undone, or ten minutes have passed."""


async def keep_for_undo(
    context: RequestContext, browser_id: str, actor: EntityAdministrator | DeploymentOperator, changes: Sequence[Change]
) -> bool:
    """Keep what a person has changed, in place of what was before.

    False if it is not to be undone: then nothing is, since it was the last. Raises StoreUnavailable. Source: D80
    """
    entry, place = _locate(context, browser_id, actor)
    can_be_kept = 0 < len(changes) <= _MOST and all(map(is_undoable, changes))
    text = encode_changes(changes).decode() if can_be_kept else ""
    kept = bool(text) and len(text) <= _MOST_CHARACTERS
    if kept:
        people = await _read_people(context, actor, changes)
        text = msgspec.json.encode(_Kept(msgspec.Raw(text.encode()), people)).decode()
    async with context.provider.transient.batch(context.now) as batch:
        if kept:
            await entry.put(batch, encrypt_value(context, text.encode(), _KIND, *place, bound_to=place))
        else:
            await entry.take(batch)
    return kept


class Undoable(msgspec.Struct, frozen=True, kw_only=True):
    """A change that can be undone."""

    name: str
    """names it in the form that undoes it"""
    changes: tuple[Change, ...]


async def find_undoable(
    context: RequestContext, browser_id: str, actor: EntityAdministrator | DeploymentOperator
) -> Undoable | None:
    """Return the last change of a browser.

    None if it is not kept. Raises StoreUnavailable. Source: D80
    """
    entry, place = _locate(context, browser_id, actor)
    sealed = await entry.read(context.provider.transient, now=context.now) or ""
    try:
        return Undoable(name=_name(sealed), changes=_open(context, sealed, place)[0])
    except MalformedToken:
        return None


def _open(context: RequestContext, sealed: str, place: tuple[str, ...]) -> tuple[tuple[Change, ...], str]:
    """The kept changes, and the digest of their people.

    Raises MalformedToken.
    """
    text = decrypt_value(context, sealed, _KIND, *place, bound_to=place)
    kept = msgspec.json.decode(text, type=_Kept)
    return decode_changes(bytes(kept.changes).decode()), kept.people


def _name(sealed: str) -> str:
    return sha256(sealed.encode()).hexdigest()[:_NAME_CHARACTERS]


async def undo_changes(
    context: RequestContext,
    browser_id: str,
    actor: EntityAdministrator | DeploymentOperator,
    asking: RequestDetails,
    *,
    named: str,
) -> ChangeRequest | None:
    """Undo the last change of a browser, or request it, once.

    `named` is its name, as it was offered. Raises NothingToUndo, also if another change is the last by now,
    ChangedMeanwhile if a record is no longer as the change has left it or somebody is known otherwise, and as
    `write_changes`. Source: D54, D68, D80
    """
    entry, place = _locate(context, browser_id, actor)
    sealed = await entry.read(context.provider.transient, now=context.now)
    try:
        made, people = _open(context, sealed if sealed and _name(sealed) == named else "", place)
    except MalformedToken:
        raise NothingToUndo(phrase("this can no longer be undone")) from None
    registry = context.provider.registry
    of = {(row.user_id, row.entity_id) for each in made if isinstance(row := each.record, _ROWS)}
    members = await registry.directory.read(Membership, of)
    if await _read_people(context, actor, made) != people:
        raise ChangedMeanwhile("somebody concerned is known otherwise now")
    changes = [Change(each.after, _as_of(each, now=context.now)) for each in reversed(made)]
    seen = [Precondition(Membership, key, members.get(key)) for key in of]
    try:
        request = await write_changes(registry, actor, changes, asking=asking, seen=seen)
    except (MemberNameTaken, IdentifierConflict):
        raise ChangedMeanwhile("another member has this user name now") from None
    async with context.provider.transient.batch(context.now) as batch:
        await entry.take(batch)
    return request


async def _read_people(
    context: RequestContext, actor: EntityAdministrator | DeploymentOperator, changes: Sequence[Change]
) -> str:
    """A digest of the people whom changes concern.

    As the entity knows them now. Source: D68
    """
    entity_id = actor.entity_id
    return digest_names(await read_requested_people(context.provider.registry, entity_id, changes, ""))


def _as_of(made: Change, *, now: float) -> KeyedRecord | None:
    """The record before a change; a membership is changed now."""
    return replace(made.before, changed_at=int(now)) if isinstance(made.before, Membership) else made.before


def _locate(
    context: RequestContext, browser_id: str, actor: EntityAdministrator | DeploymentOperator
) -> tuple[Entry[str], tuple[str, ...]]:
    place = browser_id, actor.name, actor.entity_id
    return namespaces.UNDO.entry(context.provider.policy.base_url, *place), place
