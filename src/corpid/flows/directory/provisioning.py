"""Members of an entity: list, invite, change, end (D60).

An invitation never looks for accounts, so that its result reveals nothing about them. Only members of the membership
are written, never those of the person (D61).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import asdict, replace

from corpid.flows.directory.approvals import submit
from corpid.flows.directory.finding import entity_named
from corpid.flows.directory.lists import as_place, cut_page, place
from corpid.flows.directory.write import (
    NEEDS_APPROVAL,
    Refused,
    authorise_changes,
    change_event,
    is_of_entity,
    record_changes,
)
from corpid.rules.directory import person_names
from corpid.rules.directory.access import Forbidden, Object, authorise
from corpid.rules.directory.access_conditions import OWNER_STAYS
from corpid.rules.directory.changes import (
    ChangedMeanwhile,
    Delete,
    ExternalIdTaken,
    LastOwnerRemoved,
    MemberNameTaken,
    MissingReference,
    Precondition,
)
from corpid.rules.directory.invitations import is_redirection, refuse_unreachable
from corpid.rules.directory.member_details import InvalidDetails, MemberDetails, check_details
from corpid.rules.directory.names import is_storable
from corpid.rules.directory.plan import Change
from corpid.rules.directory.queries import MemberCondition, MemberQuery, MemberState, SortedBy
from corpid.rules.directory.records import (
    DUE,
    NOT_TO_BE_SENT,
    Administrator,
    Assignment,
    ChangeRequest,
    Entity,
    Membership,
    ThirdPartyAssignment,
    User,
)
from corpid.rules.limits import PROVISIONING_CONDITIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from corpid.flows.directory.invitation_limits import InvitationLimit
    from corpid.flows.directory.lists import ListPage
    from corpid.flows.directory.write import AuthorisedChanges
    from corpid.rules.directory.actors import Actor
    from corpid.rules.directory.queries import StoredMember
    from corpid.stores.sql.registry import Registry

__all__ = [
    "IdentifierConflict", "InvalidDetails", "LastOwner", "Member", "MemberDetails", "MemberState", "MembersPage",
    "MembersQuery", "UnknownMember", "change_member", "considered_invitation", "count_redirection", "end_member",
    "end_seen", "invitation", "invite", "invited_at", "member", "members", "members_by_name", "refuse_taken",
    "rows_under", "store_refusals", "submit_invitation", "with_details",
]  # fmt: skip

_MOST: Final = 1000
"""roles of one member that end with the membership, each with an audit entry"""
_LONGEST_ID: Final = 100
_SAME_ADDRESS: Final = 20
"""members with one address that are looked at"""
_ATTEMPTS: Final = 3
"""to end a membership that changes meanwhile"""


class UnknownMember(Exception):
    """The entity has no such member."""


class IdentifierConflict(Exception):
    """Another member of the entity has this `member`: `user_name` or `external_id`."""

    def __init__(self, member: str) -> None:
        self.member = member
        super().__init__(f"{member}: another member of this entity has it")


class LastOwner(Exception):
    """The entity would have no owner who can act."""

    def __init__(self) -> None:
        super().__init__(OWNER_STAYS.reason)


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A member of an entity, whose person may be a placeholder."""

    membership: Membership
    user: User

    @property
    def name(self) -> str:
        """The identity, with the name that the entity wrote (D68)."""
        return person_names.shown_name(self.membership, self.user)

    @property
    def identity(self) -> str:
        """The account's user name, or an invitation's address (D68)."""
        return person_names.identity(self.membership, self.user)

    @property
    def name_alone(self) -> str:
        """The name that the entity wrote, else their own, else the identity (D61)."""
        return person_names.bound_name(person_names.full_name(self.membership, self.user)) or self.identity

    @property
    def email(self) -> str:
        """The address at which the entity knows them; may be empty (D61).

        That of an invitation is in small letters (D68).
        """
        address = person_names.email(self.membership, self.user)
        return address.lower() if self.membership.invited else address

    @property
    def state(self) -> MemberState:
        """The state of sign-in that the entity may know (D61)."""
        if self.membership.invited:
            return "invited"
        if not self.membership.enabled:
            return "suspended"
        return "active" if self.user.enabled else "locked"


class MembersQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query for members; `start` counts from 0."""

    conditions: tuple[MemberCondition, ...] = ()
    start: int = 0
    count: int
    sort: SortedBy = "membership_id"
    descending: bool = False


class MembersPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the members that match, and the number of all."""

    total: int
    members: tuple[Member, ...]


async def member(registry: Registry, membership_id: str, *, actor: Actor) -> Member:
    """Return a member by the identifier of the membership.

    Raises UnknownMember, also for one of another entity, access.Forbidden, StoreUnavailable. Source: D60, D61
    """
    entity_id = getattr(actor, "entity_id", "")
    is_one = 0 < len(membership_id) <= _LONGEST_ID and is_storable(membership_id)
    found = await registry.provisioning.member(membership_id) if is_one else None
    if entity_id:
        authorise(actor, "read", Object(kind="membership", entity_id=entity_id))
    if found is None or entity_id not in {"", found.membership.entity_id}:
        raise UnknownMember("there is no such member")
    authorise(actor, "read", Object(kind="membership", entity_id=found.membership.entity_id))
    return _shown(found)


async def members(registry: Registry, wanted: MembersQuery, *, actor: Actor, entity_id: str = "") -> MembersPage:
    """Return a part of the members of an entity.

    `entity_id` is the actor's if it is empty. Raises Refused for too many conditions, access.Forbidden,
    StoreUnavailable. Source: RFC 7644 §3.4.2, D60
    """
    of_entity = _entity(actor, entity_id)
    authorise(actor, "read", Object(kind="membership", entity_id=of_entity))
    if len(wanted.conditions) > PROVISIONING_CONDITIONS:
        raise Refused(f"a filter has at most {PROVISIONING_CONDITIONS} conditions")
    if not all(is_storable(value) for _, _, value in wanted.conditions):
        return MembersPage(total=0, members=())
    query = MemberQuery(
        entity_id=of_entity, conditions=wanted.conditions, sorted_by=wanted.sort, descending=wanted.descending,
        offset=wanted.start, limit=wanted.count,
    )  # fmt: skip
    total, found = await registry.provisioning.members(query)
    return MembersPage(total=total, members=tuple(map(_shown, found)))


async def members_by_name(
    registry: Registry, entity_id: str, *, actor: Actor, after: str, limit: int
) -> ListPage[Member]:
    """List the members of an entity by user name.

    `after` is the place that the page before names. Raises Refused if there is no such entity or place,
    access.Forbidden, StoreUnavailable. Source: D60
    """
    await entity_named(registry, entity_id, actor=actor)
    authorise(actor, "read", Object(kind="membership", entity_id=entity_id))
    name, last = place(after, 2)
    found = await registry.provisioning.members_by_name(entity_id, after=(name, last), limit=limit + 1)
    places = [as_place(each) for _, each in found]
    return cut_page([_shown(stored) for stored, _ in found], limit, places)


async def invite(
    registry: Registry,
    limit: InvitationLimit,
    details: MemberDetails,
    *,
    actor: Actor,
    now: float,
    new_id: Callable[[], str],
    entity_id: str = "",
    enabled: bool = True,
    send: bool = True,
    reachable: bool = False,
) -> Member:
    """Invite a person to an entity.

    `entity_id` is the actor's if it is empty; `now` is in epoch seconds; `new_id` gives UUIDs. The e-mail is sent
    later, if `send` and there is an address, which is required if `reachable`. Raises InvalidDetails,
    IdentifierConflict, TooManyInvitations, Refused if there is no such entity, access.Forbidden (also if it needs
    approval), Conflict, StoreUnavailable. Source: D60
    """
    change = invitation(details, _entity(actor, entity_id), now=now, new_id=new_id, enabled=enabled, send=send)
    allowed, membership = await considered_invitation(registry, change, actor=actor)
    if reachable:
        refuse_unreachable(membership)
    await limit.count(actor, membership.entity_id, membership.email if send else "", now=now)
    await _write(registry, allowed, Precondition(Membership, membership.key, None))
    return await member(registry, membership.membership_id, actor=actor)


async def submit_invitation(
    registry: Registry,
    limit: InvitationLimit,
    details: MemberDetails,
    *,
    actor: Actor,
    entity_id: str,
    send: bool,
    reason: str,
    now: float,
    new_id: Callable[[], str],
) -> Membership | ChangeRequest:
    """Invite a person to an entity, or request it for approval.

    As `invite`; `reason` is for whoever approves it. Raises InvalidDetails (also of `entity`, if there is none),
    IdentifierConflict, TooManyInvitations, approvals.NoReason, access.Forbidden, Conflict, StoreUnavailable. Source:
    D55, D59, D60
    """
    change = invitation(details, entity_id, now=now, new_id=new_id, enabled=True, send=send)
    membership = change.becomes
    assert isinstance(membership, Membership)  # noqa: S101
    await authorise_changes(registry, actor, [change])
    if not await registry.directory.read(Entity, [(entity_id,)]):
        raise InvalidDetails((("entity", "there is no entity of this identifier"),))
    await refuse_taken(registry, membership)
    await limit.count(actor, entity_id, membership.email if send else "", now=now)
    seen = Precondition(Membership, membership.key, None)
    with store_refusals():
        request = await submit(registry, actor, [change], reason=reason, now=now, unique=new_id(), seen=[seen])
    return request or membership


async def considered_invitation(
    registry: Registry, change: Change, *, actor: Actor
) -> tuple[AuthorisedChanges, Membership]:
    """Authorise an invitation, and look whether its names are free.

    Nothing is written. Raises IdentifierConflict, Refused if there is no such entity, access.Forbidden,
    StoreUnavailable. Source: D60
    """
    membership = change.becomes
    assert isinstance(membership, Membership)  # noqa: S101
    allowed = await _authorised(registry, actor, change)
    await entity_named(registry, membership.entity_id, actor=actor)
    await refuse_taken(registry, membership)
    return allowed, membership


def invitation(
    details: MemberDetails, entity_id: str, *, now: float, new_id: Callable[[], str], enabled: bool, send: bool
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
    return Change(verb="add", kind="membership", key=membership.key, becomes=membership)


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
    found = await member(registry, membership_id, actor=actor)
    was = found.membership
    if expected is not None and was != expected:
        raise ChangedMeanwhile("the member was changed at the same moment: read it again")
    becomes = with_details(was, details, enabled=enabled, now=now)
    if becomes == was:
        return found
    change = Change(verb="change", kind="membership", key=was.key, was=was, becomes=becomes)
    allowed = await _authorised(registry, actor, change)
    await refuse_taken(registry, becomes, was)
    await count_redirection(limit, was, becomes, actor=actor, now=now)
    await _write(registry, allowed, Precondition(Membership, was.key, was))
    return await member(registry, membership_id, actor=actor)


def with_details(was: Membership, details: MemberDetails, *, enabled: bool, now: float) -> Membership:
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


async def count_redirection(
    limit: InvitationLimit,
    was: Membership,
    becomes: Membership,
    *,
    actor: Actor,
    now: float,
) -> None:
    """Count the e-mail to another address of an invited member.

    Raises TooManyInvitations, StoreUnavailable. Source: D60
    """
    if becomes.email and is_redirection(was, becomes) and becomes.invitation_sent_at == DUE:
        await limit.count(actor, was.entity_id, becomes.email, now=now)


async def end_member(registry: Registry, membership_id: str, *, actor: Actor) -> None:
    """End a membership, or take an invitation back, with level and roles.

    Raises UnknownMember, LastOwner, access.Forbidden (also if it needs approval), Conflict, StoreUnavailable. Source:
    D53, D60
    """
    for attempt in range(_ATTEMPTS):
        found = (await member(registry, membership_id, actor=actor)).membership
        try:
            await end_seen(registry, found, actor=actor)
        except (ChangedMeanwhile, MissingReference, Forbidden):  # e.g. it was accepted just now
            now_read = (await member(registry, membership_id, actor=actor)).membership
            if attempt == _ATTEMPTS - 1 or now_read == found:
                raise
            continue
        return


async def end_seen(registry: Registry, found: Membership, *, actor: Actor) -> None:
    """End a membership as it was read, and its rows.

    Raises LastOwner, ChangedMeanwhile if it is no longer so, access.Forbidden, Conflict, StoreUnavailable. Source: D53
    """
    change = Change(verb="remove", kind="membership", key=found.key, was=found)
    allowed = await _authorised(registry, actor, change)
    rows = await rows_under(registry, found)
    invited = found if found.invited else None
    ended = [Delete(row.was, change_event(actor, row, invited=invited)) for row in rows]  # type: ignore[arg-type]
    try:
        await registry.directory.write([Precondition(Membership, found.key, found), *ended, *record_changes(allowed)])
    except LastOwnerRemoved:
        raise LastOwner from None


async def rows_under(registry: Registry, of: Membership) -> list[Change]:
    """The removal of everything that ends with a membership: roles and level.

    Raises StoreUnavailable. Source: D53
    """
    where = {"user_id": of.user_id, "entity_id": of.entity_id}
    directory = registry.directory
    return [
        *(
            Change(verb="remove", kind="third-party row", key=row.key, was=row)
            for row in await directory.page(ThirdPartyAssignment, where, after=("",) * 7, limit=_MOST)
        ),
        *(
            Change(verb="remove", kind="assignment", key=row.key, was=row)
            for row in await directory.page(Assignment, where, after=("",) * 6, limit=_MOST)
        ),
        *(
            Change(verb="remove", kind="administrator", key=row.key, was=row)
            for row in (await directory.read(Administrator, [of.key])).values()
        ),
    ]


async def _authorised(registry: Registry, actor: Actor, change: Change) -> AuthorisedChanges:
    """Authorise one change of a membership that needs no approval."""
    try:
        found = await authorise_changes(registry, actor, [change])
    except Forbidden as error:
        if error.reason == OWNER_STAYS.reason:
            raise LastOwner from None
        raise
    if found.needing and is_of_entity(actor):
        raise Forbidden(actor, "delete" if change.verb == "remove" else "write", change.kind, NEEDS_APPROVAL)
    return found


async def _write(registry: Registry, allowed: AuthorisedChanges, seen: Precondition) -> None:
    with store_refusals():
        await registry.directory.write([*record_changes(allowed), seen])


@contextmanager
def store_refusals() -> Iterator[None]:
    """Raise IdentifierConflict or LastOwner for a refusal by the store. Source: D54, D60"""
    try:
        yield
    except MemberNameTaken:
        raise IdentifierConflict("user_name") from None
    except ExternalIdTaken:
        raise IdentifierConflict("external_id") from None
    except LastOwnerRemoved:
        raise LastOwner from None


async def refuse_taken(registry: Registry, membership: Membership, was: Membership | None = None) -> None:
    """Refuse a user name or external identifier of another member.

    Also the user name of another member's account. What stays as it `was` is not looked at: whoever has a name that
    means two people can still be suspended. Raises IdentifierConflict, StoreUnavailable. Source: D60, D68
    """
    unique: tuple[tuple[str, MemberCondition], ...] = (
        ("user_name", ("any_user_name", "eq", membership.user_name)),
        ("external_id", ("external_id", "eq", membership.external_id)),
    )
    for member, condition in unique:
        if (
            getattr(was, member, "") != condition[2]
            and condition[2]
            and await _another_has(registry, membership, condition)
        ):
            raise IdentifierConflict(member)
    if membership.user_name != getattr(was, "user_name", "") and await _identifies_invited(registry, membership):
        raise IdentifierConflict("user_name")


async def _identifies_invited(registry: Registry, membership: Membership) -> bool:
    """Return whether a user name is the address of another invitation (D68)."""
    found = await invited_at(registry, membership.entity_id, membership.user_name)
    return any(each.membership.membership_id != membership.membership_id for each in found)


async def invited_at(registry: Registry, entity_id: str, address: str) -> list[Member]:
    """Return the open invitations of an entity to an address.

    Raises StoreUnavailable. Source: D68
    """
    if "@" not in address:
        return []
    query = MemberQuery(entity_id=entity_id, conditions=(("email", "eq", address),), limit=_SAME_ADDRESS)
    _, found = await registry.provisioning.members(query)
    return [_shown(each) for each in found if each.membership.invited]


async def _another_has(registry: Registry, membership: Membership, condition: MemberCondition) -> bool:
    query = MemberQuery(entity_id=membership.entity_id, conditions=(condition,), limit=2)
    _, found = await registry.provisioning.members(query)
    return any(each.membership.membership_id != membership.membership_id for each in found)


def _entity(actor: Actor, entity_id: str) -> str:
    """The entity that is meant: the actor's, if none is named."""
    return entity_id or str(getattr(actor, "entity_id", ""))


def _shown(found: StoredMember) -> Member:
    return Member(membership=found.membership, user=found.user)
