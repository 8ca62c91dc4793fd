"""Erasure of a person, also from the details of the audit (D57, D61).

The record goes first, in one transaction, and with it sessions, links, factors, consents, memberships and roles. The
details of audit entries go after it, in short transactions; an erasure that was interrupted is finished by the same
command. A person's identifier is never given again, so what still has it leads to nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.flows import notifications
from corpid.flows.directory.actors import list_entities_without_owner
from corpid.flows.directory.write import Refused, write_changes
from corpid.flows.operations import audit
from corpid.rules.audit import AuditAction, AuditQuery
from corpid.rules.directory.access import Actor, Object, authorise, refuse_early
from corpid.rules.directory.records import Change, ChangedMeanwhile, DeletionRequest, Precondition, User
from corpid.rules.directory.sources import channel

if TYPE_CHECKING:
    from corpid.outbound.mail import Mail
    from corpid.stores.sql.registry import Registry


class ErasureResult(msgspec.Struct, frozen=True, kw_only=True):
    """An erased person, by what is left of them."""

    user_id: str
    details: int
    """audit entries that lost their details now"""
    remarks: tuple[str, ...] = ()
    """sentences for the operator"""


async def erase(
    registry: Registry,
    user_id: str,
    *,
    actor: Actor,
    now: float,
    mail: Mail,
    provider_name: str,
    unrequested: bool = False,
) -> ErasureResult:
    """Erase a person who asked for it, and tell them by e-mail.

    `unrequested` erases also who did not ask. Of a person who was removed before, the details of the audit go. Raises
    write.Refused, ChangedMeanwhile if the request was withdrawn at this moment, access.Forbidden, Conflict,
    StoreUnavailable. Source: D57, D61
    """
    # Asked before the record goes: half an erasure would leave names to somebody who may not remove them.
    authorise(actor, "write", Object(kind="deployment"))
    refuse_early(actor, "delete", Object(kind="user", user_id=user_id))
    user = await registry.directory.user(user_id)
    remarks: list[str] = []
    if user is not None:
        remarks = await _remove(registry, user, actor=actor, unrequested=unrequested)
        notifications.send_erasure_notice(mail, user, provider_name=provider_name)
    details = await audit.erase_details(registry, user_id, actor=actor, now=now)
    return ErasureResult(user_id=user_id, details=details, remarks=tuple(remarks))


async def identify_person(registry: Registry, named: str) -> str:
    """Return the identifier of a person, also of a removed one.

    `named` is an identifier or a user name. Raises write.Refused if nobody is or was of it, StoreUnavailable. Source:
    D57
    """
    user_id = await audit.identify_person(registry, named)
    if not await is_known(registry, user_id):
        raise Refused(f"there is no user {named!r}, and the audit has no removed one")
    return user_id


async def is_known(registry: Registry, user_id: str) -> bool:
    """Return whether somebody has this identifier, or had it.

    Raises StoreUnavailable. Source: D57
    """
    if await registry.directory.user(user_id) is not None:
        return True
    removed = AuditQuery(object=user_id, actions=(AuditAction.USER_REMOVE,))
    return bool(await registry.audit.latest(removed, limit=1))


async def _remove(registry: Registry, user: User, *, actor: Actor, unrequested: bool) -> list[str]:
    """Remove a person's record as it was seen; return remarks."""
    if user.placeholder:
        raise Refused(f"{user.user_name} has not accepted an invitation: revoke it instead")
    request = await registry.directory.find(DeletionRequest, user.user_id)
    if request is None and not unrequested:
        raise Refused(f"{user.user_name} has not asked to be deleted, or has withdrawn the request")
    remarks = [
        f"the entity {entity_id} has no owner left who can act"
        for entity_id in await list_entities_without_owner(registry, user.user_id)
    ]
    written_by = (await registry.directory.sourced(User, [user.key])).get(user.key)
    if written_by is not None and channel(written_by.sources.record) == "file":
        remarks.append("a directory file names this person: take them out of it, or it adds them again as somebody new")
    removal = Change(user, None)
    seen = [Precondition(User, user.key, user), Precondition(DeletionRequest, user.key, request)]
    try:
        await write_changes(registry, actor, [removal], seen=seen)
    except ChangedMeanwhile:
        raise ChangedMeanwhile(
            f"{user.user_name} was changed, or withdrew the request, at the same moment: look again"
        ) from None
    return remarks
