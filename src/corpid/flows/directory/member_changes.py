"""Changes of memberships: invited, given, suspended, restored, ended (D55, D60, D61).

For an entity's administrators (`submit_…`, `end_membership`: what needs approval is requested) and for programs
(`write_members`, `change_member`, `end_member`: it is refused). Operators' commands change them under the rules of a
file.

An invitation never looks for accounts, so that its result reveals nothing about them. Only members of the membership
are written, never those of the person.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from msgspec.structs import asdict, replace

from corpid.flows.directory.members import load_member
from corpid.flows.directory.write import (
    IdentifierConflict,
    Refused,
    RequestDetails,
    authorise_changes,
    guard_records,
    write_changes,
)
from corpid.rules.directory.access import OWNER_STAYS, Forbidden, Object, refuse_early
from corpid.rules.directory.actors import Actor, EntityAdministrator, ProvisioningToken
from corpid.rules.directory.approvals import MOST_CHANGES
from corpid.rules.directory.changes import (
    ChangedMeanwhile,
    Conflict,
    ExternalIdTaken,
    LastOwnerRemoved,
    MemberNameTaken,
    MissingReference,
)
from corpid.rules.directory.invitations import is_redirection, refuse_unreachable
from corpid.rules.directory.member_details import InvalidDetails, check_details, details_of
from corpid.rules.directory.queries import Member, MemberName, MemberQuery
from corpid.rules.directory.records import (
    DUE,
    NOT_TO_BE_SENT,
    Assignment,
    Change,
    ChangeRequest,
    Entity,
    MemberDetails,
    Membership,
    User,
)
from corpid.rules.directory.sources import is_made_by_person
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from corpid.flows.directory.invitations import InvitationLimit
    from corpid.stores.sql.registry import Registry

MOST_INVITED: Final = MOST_CHANGES
_ADDRESSES: Final[tuple[MemberName, ...]] = ("email", "any_user_name")
"""members of a membership that may be an address"""
_ATTEMPTS: Final = 3
"""to end a membership that changes meanwhile"""


class LastOwner(Exception):
    """The entity would have no owner who can act."""

    def __init__(self) -> None:
        super().__init__(OWNER_STAYS.reason)


async def known_addresses(
    registry: Registry, addresses: Sequence[str], *, actor: EntityAdministrator
) -> frozenset[str]:
    """Return those addresses that members of the actor's entity have.

    Also invited ones, and those who have one as their user name. Raises access.Forbidden, StoreUnavailable. Source:
    D60, D61
    """
    refuse_early(actor, "write", Object(kind="membership", entity_id=actor.entity_id))
    return frozenset([each for each in addresses if await _is_known(registry, actor.entity_id, each)])


async def submit_invitations(
    registry: Registry,
    limit: InvitationLimit,
    people: Sequence[MemberDetails],
    *,
    actor: EntityAdministrator,
    asking: RequestDetails,
    new_id: Callable[[], str],
    access: Assignment | None = None,
) -> ChangeRequest | None:
    """Invite people to the actor's entity, or request it: all or nobody.

    `access` is the role that each of them gets, of nobody yet: it ends if the invitation goes to another address (D68).
    Raises InvalidDetails, IdentifierConflict, TooManyInvitations, NoReason, access.Forbidden, Refused, Conflict,
    StoreUnavailable. Source: D55, D60
    """
    refuse_early(actor, "write", Object(kind="membership", entity_id=actor.entity_id))
    if len(people) > MOST_INVITED:
        raise Refused(phrase("invite at most {count} people at once", count=MOST_INVITED))
    changes = [plan_invitation(each, actor.entity_id, now=asking.now, new_id=new_id) for each in people]
    if access is not None:
        changes += [Change(None, replace(access, user_id=each.record.user_id)) for each in changes]
    return await write_members(registry, limit, changes, actor=actor, now=asking.now, asking=asking)


async def submit_invitation(
    registry: Registry,
    limit: InvitationLimit,
    details: MemberDetails,
    *,
    actor: Actor,
    entity_id: str,
    send: bool,
    asking: RequestDetails,
    new_id: Callable[[], str],
) -> Membership | ChangeRequest:
    """Invite a person to an entity, or request it for approval.

    The e-mail is sent later, if `send` and there is an address; `new_id` gives UUIDs. Raises InvalidDetails (also of `entity`, if there is none), IdentifierConflict,
    TooManyInvitations, NoReason, access.Forbidden, Conflict, StoreUnavailable. Source: D55, D59, D60
    """
    change = plan_invitation(details, entity_id, now=asking.now, new_id=new_id, send=send)
    await authorise_changes(registry, actor, [change])
    if not await registry.directory.read(Entity, [(entity_id,)]):
        raise InvalidDetails((("entity", "there is no entity of this identifier"),))
    request = await write_members(registry, limit, [change], actor=actor, now=asking.now, asking=asking)
    return request or change.record


async def submit_details(
    registry: Registry,
    limit: InvitationLimit,
    seen: Membership,
    written: Mapping[str, str],
    *,
    actor: EntityAdministrator,
    asking: RequestDetails,
) -> ChangeRequest | None:
    """Change details that the entity writes about a member, or request it.

    `seen` is the membership as the person saw it, `written` the details that change. The user name follows an address
    that it repeats. Raises as `change_member`, and NoReason. Source: D55, D60, D61
    """
    details = replace(details_of(seen), **written)
    if seen.user_name == seen.email and details.email:
        details = replace(details, user_name="")
    becomes = replace_details(seen, details, enabled=seen.enabled, now=asking.now)
    return await write_members(registry, limit, [Change(seen, becomes)], actor=actor, now=asking.now, asking=asking)


async def submit_switch(
    registry: Registry,
    limit: InvitationLimit,
    seen: Membership,
    *,
    enabled: bool,
    actor: EntityAdministrator,
    asking: RequestDetails,
) -> ChangeRequest | None:
    """Suspend or restore a member, or request it.

    Raises LastOwner, ChangedMeanwhile, NoReason, access.Forbidden, Conflict, StoreUnavailable. Source: D55,
    D60
    """
    becomes = seen if seen.enabled is enabled else replace(seen, enabled=enabled, changed_at=int(asking.now))
    return await write_members(registry, limit, [Change(seen, becomes)], actor=actor, now=asking.now, asking=asking)


async def write_members(
    registry: Registry,
    limit: InvitationLimit,
    changes: Sequence[Change],
    *,
    actor: Actor,
    now: float,
    asking: RequestDetails | None = None,
    reachable: bool = False,
) -> ChangeRequest | None:
    """Write memberships that are new or differ, or request it.

    The e-mails that are due are counted; an invitation has an address if it is to be `reachable`. Raises
    InvalidDetails, IdentifierConflict, LastOwner, TooManyInvitations, ChangedMeanwhile, NoReason, access.Forbidden,
    Conflict, StoreUnavailable. Source: D55, D60, D61
    """
    made = [change for change in changes if change.before != change.after]
    if not made:
        refuse_early(actor, "write", Object(kind="membership", entity_id=changes[0].record.entity_id))
        return None

    async def count() -> None:
        for change in made if reachable else ():
            refuse_unreachable(change.after)
        await limit.count_changes(actor, made, now=now)

    seen = guard_records(made)
    with translate_refusals():
        return await write_changes(registry, actor, made, asking=asking, seen=seen, once_checked=count)


def plan_invitation(
    details: MemberDetails,
    entity_id: str,
    *,
    now: float,
    new_id: Callable[[], str],
    enabled: bool = True,
    send: bool = True,
) -> Change:
    """The change that invites a person.

    Raises InvalidDetails. Source: D60
    """
    stored = check_details(details)
    membership = Membership(
        user_id=new_id(), entity_id=entity_id, membership_id=new_id(), invited=True, enabled=enabled,
        created_at=int(now), changed_at=int(now),
        invitation_sent_at=DUE if send and stored.email else NOT_TO_BE_SENT, **asdict(stored),
    )  # fmt: skip
    return Change(None, membership)


async def change_member(
    registry: Registry,
    limit: InvitationLimit,
    membership_id: str,
    details: MemberDetails,
    *,
    enabled: bool,
    actor: Actor,
    now: float,
    expected: Membership | None = None,
) -> Member:
    """Replace the details of a member, and suspend or restore it.

    `expected` is the membership as the caller has read it. If the address of an invited member changes, an e-mail is
    sent to the new one, and what was given or asked for under the earlier one ends. Raises UnknownMember,
    InvalidDetails, IdentifierConflict, TooManyInvitations, LastOwner, ChangedMeanwhile, access.Forbidden (also if it
    needs approval), Conflict, StoreUnavailable. Source: D55, D60, D61, D68
    """
    found = await load_member(registry, membership_id, actor=actor)
    was = found.membership
    if expected is not None and was != expected:
        raise ChangedMeanwhile("the member was changed at the same moment: read it again")
    becomes = replace_details(was, details, enabled=enabled, now=now)
    if isinstance(actor, ProvisioningToken) and becomes != was:
        await _check_taken_over(registry, found, details)
    await write_members(registry, limit, [Change(was, becomes)], actor=actor, now=now)
    return await load_member(registry, membership_id, actor=actor)


async def _check_taken_over(registry: Registry, found: Member, details: MemberDetails) -> None:
    """Refuse the details of somebody else with the same user name.

    No client has named the member yet: it was found by the account's user name, which its person may have chosen.
    Raises Conflict. Source: D65, D68
    """
    named = found.membership.user_name or found.membership.invited
    if named or not details.email or found.has_address(details.email):
        return
    stored = (await registry.directory.sourced(User, [found.user.key])).get(found.user.key)
    if stored is not None and is_made_by_person(found.user, stored.sources):
        raise Conflict(
            "the person chose this userName, and their account has another address than the one in emails. If you mean "
            "this person, write the address of their account, which the portal shows; if not, choose another userName"
        )


def replace_details(was: Membership, details: MemberDetails, *, enabled: bool, now: float) -> Membership:
    """Return a membership with other details; unchanged if they are the same.

    If the address of an invited member changes, an e-mail is due. Raises InvalidDetails. Source: D60, D61
    """
    stored = check_details(details, named=was.invited or bool(was.user_name))
    becomes = replace(was, enabled=enabled, **asdict(stored))
    if becomes == was:
        return was
    becomes = replace(becomes, changed_at=int(now))
    if becomes.email and is_redirection(was, becomes) and (was.invitation_sent_at != NOT_TO_BE_SENT or not was.email):
        becomes = replace(becomes, invitation_sent_at=DUE)
    return becomes


async def end_member(registry: Registry, membership_id: str, *, actor: Actor) -> None:
    """End a membership, or take an invitation back, with level and roles.

    Raises UnknownMember, LastOwner, access.Forbidden (also if it needs approval), Conflict, StoreUnavailable. Source:
    D53, D60
    """
    for attempt in range(_ATTEMPTS):
        found = (await load_member(registry, membership_id, actor=actor)).membership
        try:
            await end_membership(registry, found, actor=actor)
        except (ChangedMeanwhile, MissingReference, Forbidden):  # e.g. it was accepted just now
            now_read = (await load_member(registry, membership_id, actor=actor)).membership
            if attempt == _ATTEMPTS - 1 or now_read == found:
                raise
            continue
        return


async def end_membership(
    registry: Registry, found: Membership, *, actor: Actor, asking: RequestDetails | None = None
) -> ChangeRequest | None:
    """End a membership as it was read, or request it.

    Its roles and level end with it. A request names them. Raises LastOwner,
    ChangedMeanwhile if it is no longer so, NoReason, access.Forbidden, Conflict, StoreUnavailable. Source: D53, D55
    """
    changes = [Change(found, None)]
    with translate_refusals():
        return await write_changes(registry, actor, changes, asking=asking, seen=guard_records(changes))


@contextmanager
def translate_refusals() -> Iterator[None]:
    """Raise IdentifierConflict or LastOwner for what rules or store refuse. Source: D54, D60"""
    try:
        yield
    except Forbidden as error:
        if error.reason == OWNER_STAYS.reason:
            raise LastOwner from None
        raise
    except MemberNameTaken:
        raise IdentifierConflict("user_name") from None
    except ExternalIdTaken:
        raise IdentifierConflict("external_id") from None
    except LastOwnerRemoved:
        raise LastOwner from None


async def _is_known(registry: Registry, entity_id: str, address: str) -> bool:
    for name in _ADDRESSES:
        query = MemberQuery(entity_id=entity_id, conditions=((name, "eq", address),), limit=1)
        _, found = await registry.provisioning.members(query)
        if found:
            return True
    return False
