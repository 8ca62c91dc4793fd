"""Undoing what a person has just changed, for ten minutes (D80).

What was changed last is kept in the transient store, encrypted, one of each session. Undoing it is a new change by the
same person, authorised and approved as of now, which rests on the records as the first one has left them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.flows import namespaces
from corpid.flows.directory.write import Refused, guard_records, write_changes
from corpid.flows.encrypted_values import decrypt_value, encrypt_value
from corpid.jose.encoding import MalformedToken
from corpid.rules.directory.changes import decode_changes, encode_changes, is_undoable
from corpid.rules.directory.records import Change, Membership
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Sequence

    import msgspec

    from corpid.flows.directory.write import RequestDetails
    from corpid.flows.namespaces import Entry
    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.actors import DeploymentOperator, EntityAdministrator
    from corpid.rules.directory.records import ChangeRequest

_KIND: Final = "undo"
_MOST_CHARACTERS: Final = 65536
"""of what is kept: some hundred roles"""


class NothingToUndo(Refused):
    """The last change cannot be undone, or ten minutes have passed."""


async def keep_for_undo(
    context: RequestContext, session_id: str, actor: EntityAdministrator | DeploymentOperator, changes: Sequence[Change]
) -> bool:
    """Keep what a person has changed, in place of what was before.

    False if it is not to be undone: then nothing is, since it was the last. Raises StoreUnavailable. Source: D80
    """
    entry, place = _locate(context, session_id, actor)
    text = encode_changes(changes).decode() if changes and all(map(is_undoable, changes)) else ""
    kept = bool(text) and len(text) <= _MOST_CHARACTERS
    async with context.provider.transient.batch(context.now) as batch:
        if kept:
            await entry.put(batch, encrypt_value(context, text.encode(), _KIND, *place, bound_to=place))
        else:
            await entry.take(batch)
    return kept


async def may_undo(context: RequestContext, session_id: str, actor: EntityAdministrator | DeploymentOperator) -> bool:
    """Return whether the last change of a session is still kept.

    Raises StoreUnavailable. Source: D80
    """
    entry, _ = _locate(context, session_id, actor)
    return await entry.read(context.provider.transient, now=context.now) is not None


async def undo_changes(
    context: RequestContext,
    session_id: str,
    actor: EntityAdministrator | DeploymentOperator,
    asking: RequestDetails,
) -> ChangeRequest | None:
    """Undo the last change of a session, or request it, once.

    Raises NothingToUndo, ChangedMeanwhile if a record is no longer as the change has left it, and as `write_changes`.
    Source: D54, D80
    """
    entry, place = _locate(context, session_id, actor)
    sealed = await entry.read(context.provider.transient, now=context.now)
    try:
        text = decrypt_value(context, sealed or "", _KIND, *place, bound_to=place).decode()
    except MalformedToken:
        raise NothingToUndo(phrase("there is nothing that can be undone any more")) from None
    changes = [Change(made.after, _as_of(made, now=context.now)) for made in reversed(decode_changes(text))]
    seen = guard_records(changes)
    request = await write_changes(context.provider.registry, actor, changes, asking=asking, seen=seen)
    async with context.provider.transient.batch(context.now) as batch:
        await entry.take(batch)
    return request


def _as_of(made: Change, *, now: float) -> msgspec.Struct | None:
    """The record before a change; a membership is changed now."""
    return replace(made.before, changed_at=int(now)) if isinstance(made.before, Membership) else made.before


def _locate(
    context: RequestContext, session_id: str, actor: EntityAdministrator | DeploymentOperator
) -> tuple[Entry[str], tuple[str, ...]]:
    place = session_id, actor.name, str(getattr(actor, "entity_id", ""))
    return namespaces.UNDO.entry(context.provider.policy.base_url, *place), place
