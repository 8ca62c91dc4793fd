"""Changes of members by an entity's administrators, or requests for them (D55, D60, D61).

As `provisioning`, which programs use; what needs approval is requested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.flows.directory.approvals import submit
from corpid.flows.directory.provisioning import (
    LastOwner,
    MemberDetails,
    count_redirection,
    end_seen,
    invitation,
    refuse_taken,
    rows_under,
    store_refusals,
    with_details,
)
from corpid.flows.directory.write import Refused, authorise_changes
from corpid.rules.directory.access import Forbidden, Object, refuse_early
from corpid.rules.directory.access_conditions import OWNER_STAYS
from corpid.rules.directory.approvals import MOST_CHANGES
from corpid.rules.directory.changes import Precondition
from corpid.rules.directory.plan import Change
from corpid.rules.directory.queries import MemberQuery
from corpid.rules.directory.records import Membership
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corpid.flows.directory.invitation_limits import InvitationLimit
    from corpid.rules.directory.actors import EntityAdministrator
    from corpid.rules.directory.queries import MemberName
    from corpid.rules.directory.records import ChangeRequest
    from corpid.stores.sql.registry import Registry

MOST_INVITED: Final = MOST_CHANGES
_ADDRESSES: Final[tuple[MemberName, ...]] = ("email", "any_user_name")
"""members of a membership that may be an address"""


async def known_addresses(
    registry: Registry, addresses: Sequence[str], *, actor: EntityAdministrator
) -> frozenset[str]:
    """Return those addresses that members of the actor's entity have.

    Also invited ones, and those who have one as their user name. Raises access.Forbidden, StoreUnavailable. Source:
    D60, D61
    """
    refuse_early(actor, "write", Object(kind="membership", entity_id=actor.entity_id))
    return frozenset([each for each in addresses if await _is_known(registry, actor.entity_id, each)])


async def _is_known(registry: Registry, entity_id: str, address: str) -> bool:
    for name in _ADDRESSES:
        query = MemberQuery(entity_id=entity_id, conditions=((name, "eq", address),), limit=1)
        _, found = await registry.provisioning.members(query)
        if found:
            return True
    return False


async def submit_invitations(
    registry: Registry,
    limit: InvitationLimit,
    people: Sequence[MemberDetails],
    *,
    actor: EntityAdministrator,
    reason: str,
    now: float,
    new_id: Callable[[], str],
) -> ChangeRequest | None:
    """Invite people to the actor's entity, or request it: all or nobody.

    `reason` is for the approver. Raises InvalidDetails, IdentifierConflict, TooManyInvitations, approvals.NoReason,
    access.Forbidden, Refused, Conflict, StoreUnavailable. Source: D55, D60
    """
    refuse_early(actor, "write", Object(kind="membership", entity_id=actor.entity_id))
    if len(people) > MOST_INVITED:
        raise Refused(phrase("at most {count} people are invited at once", count=MOST_INVITED))
    changes = [
        invitation(details, actor.entity_id, now=now, new_id=new_id, enabled=True, send=True) for details in people
    ]
    invited = [change.becomes for change in changes if isinstance(change.becomes, Membership)]
    await _check(registry, actor, changes)
    for each in invited:
        await refuse_taken(registry, each)
    for each in invited:
        await limit.count(actor, actor.entity_id, each.email, now=now)
    seen = [Precondition(Membership, each.key, None) for each in invited]
    with store_refusals():
        return await submit(registry, actor, changes, reason=reason, now=now, unique=new_id(), seen=seen)


async def submit_details(
    registry: Registry,
    limit: InvitationLimit,
    seen: Membership,
    *,
    name: str,
    email: str,
    actor: EntityAdministrator,
    reason: str,
    now: float,
    new_id: Callable[[], str],
) -> ChangeRequest | None:
    """Change what the entity writes about a member, or request it.

    `seen` is the membership as the person saw it. The user name follows an address that it repeats. Raises as
    `provisioning.change_member`, and approvals.NoReason. Source: D55, D60, D61
    """
    details = MemberDetails(**{each: getattr(seen, each) for each in MemberDetails.__struct_fields__})
    user_name = "" if seen.user_name == seen.email and email else seen.user_name
    details = replace(details, name=name, email=email, user_name=user_name)
    becomes = with_details(seen, details, enabled=seen.enabled, now=now)
    return await _submit_change(registry, limit, seen, becomes, actor=actor, reason=reason, now=now, new_id=new_id)


async def submit_switch(
    registry: Registry,
    limit: InvitationLimit,
    seen: Membership,
    *,
    enabled: bool,
    actor: EntityAdministrator,
    reason: str,
    now: float,
    new_id: Callable[[], str],
) -> ChangeRequest | None:
    """Suspend or restore a member, or request it.

    Raises LastOwner, ChangedMeanwhile, approvals.NoReason, access.Forbidden, Conflict, StoreUnavailable. Source: D55,
    D60
    """
    becomes = seen if seen.enabled is enabled else replace(seen, enabled=enabled, changed_at=int(now))
    return await _submit_change(registry, limit, seen, becomes, actor=actor, reason=reason, now=now, new_id=new_id)


async def _submit_change(
    registry: Registry,
    limit: InvitationLimit,
    was: Membership,
    becomes: Membership,
    *,
    actor: EntityAdministrator,
    reason: str,
    now: float,
    new_id: Callable[[], str],
) -> ChangeRequest | None:
    refuse_early(actor, "write", Object(kind="membership", entity_id=was.entity_id))
    if becomes == was:
        return None
    change = Change(verb="change", kind="membership", key=was.key, was=was, becomes=becomes)
    await _check(registry, actor, [change])
    await refuse_taken(registry, becomes, was)
    await count_redirection(limit, was, becomes, actor=actor, now=now)
    seen = [Precondition(Membership, was.key, was)]
    with store_refusals():
        return await submit(registry, actor, [change], reason=reason, now=now, unique=new_id(), seen=seen)


async def submit_end(
    registry: Registry,
    seen: Membership,
    *,
    actor: EntityAdministrator,
    reason: str,
    now: float,
    new_id: Callable[[], str],
) -> ChangeRequest | None:
    """End a membership, or revoke an invitation, or request it.

    `seen` is the membership as the person saw it. A request names its roles and level, unless they are too many. Raises
    LastOwner, ChangedMeanwhile, approvals.NoReason, access.Forbidden, Conflict, StoreUnavailable. Source: D53, D55
    """
    change = Change(verb="remove", kind="membership", key=seen.key, was=seen)
    if not await _check(registry, actor, [change]):
        await end_seen(registry, seen, actor=actor)
        return None
    rows = await rows_under(registry, seen)
    changes = [*rows, change] if len(rows) < MOST_CHANGES else [change]
    guard = Precondition(Membership, seen.key, seen)
    return await submit(registry, actor, changes, reason=reason, now=now, unique=new_id(), seen=[guard])


async def _check(registry: Registry, actor: EntityAdministrator, changes: Sequence[Change]) -> bool:
    """Authorise changes; True if they need approval."""
    try:
        return bool((await authorise_changes(registry, actor, changes)).needing)
    except Forbidden as error:
        if error.reason == OWNER_STAYS.reason:
            raise LastOwner from None
        raise
