"""Members of an entity: found, listed, invited, changed, ended (D53, D60, D61, D81).

Many may be changed at once. Changes are those of an entity's administrators (`submit_…`, `end_membership`: what needs approval is requested) and of
programs (`write_members`, `change_member`, `end_member`: it is refused). Operators' commands change members under the
rules of a file.

An invitation never looks for accounts, so that its result reveals nothing about them. Only members of the membership
are written, never those of the person.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import asdict, replace

from corpid.flows.directory.actors import assume_recent, is_allowed
from corpid.flows.directory.lists import (
    ListPage,
    cut_page,
    format_place,
    list_records,
    load_roles,
    parse_place,
    read_all,
)
from corpid.flows.directory.write import (
    IdentifierConflict,
    Refused,
    RequestDetails,
    authorise_changes,
    check_changes,
    cut_parts,
    write_changes,
    write_parts,
)
from corpid.rules.directory.access import (
    OWNER_STAYS,
    Actor,
    EntityAdministrator,
    Forbidden,
    Level,
    Object,
    ObjectKind,
    ProvisioningToken,
    authorise,
    refuse_early,
)
from corpid.rules.directory.approvals import MOST_CHANGES
from corpid.rules.directory.lists import MEMBERS, MOST_COUNTED
from corpid.rules.directory.memberships import (
    InvalidDetails,
    Member,
    MemberCondition,
    MemberName,
    MemberQuery,
    MemberState,
    check_details,
    details_of,
    is_redirection,
    refuse_unreachable,
)
from corpid.rules.directory.names import canonical, fold_text, is_storable, is_user_id
from corpid.rules.directory.records import (
    DUE,
    NOT_TO_BE_SENT,
    Administrator,
    Assignment,
    Change,
    ChangedMeanwhile,
    ChangeRequest,
    Conflict,
    Entity,
    ExternalIdTaken,
    LastOwnerRemoved,
    MemberDetails,
    MemberNameTaken,
    Membership,
    MissingReference,
    Precondition,
    StoreChange,
    ThirdPartyAssignment,
    User,
)
from corpid.rules.directory.roles import RoleRecords
from corpid.rules.directory.sources import is_made_by_person
from corpid.rules.limits import PROVISIONING_CONDITIONS
from corpid.texts import Phrase, phrase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from corpid.flows.directory.invitations import InvitationLimit
    from corpid.stores.sql.registry import Registry

_CANDIDATES: Final = 5
"""people whom a refusal lists, if a user name means several"""
_LONGEST_ID: Final = 100


class MemberFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Members that a list is narrowed to; empty texts narrow nothing."""

    search: str = ""
    """words of name, user name, e-mail address or other details"""
    state: MemberState | Literal[""] = ""
    service_id: str = ""


class MemberSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A member with level and number of roles."""

    member: Member
    level: Level = ""
    roles: int = 0
    """that the actor may see"""


class AmbiguousName(Refused):
    """A user name that means several people at an entity."""


class MemberAccess(msgspec.Struct, frozen=True, kw_only=True):
    """Level and access of one member, as an actor may see them."""

    administrator: Administrator | None
    roles: ListPage[RoleRecords]
    for_others: tuple[RoleRecords, ...]
    """for client entities; none if the actor may not see them"""


class ChangePreview(msgspec.Struct, frozen=True, kw_only=True):
    """The refusal of a change, or its need for approval."""

    refusal: str = ""
    """the reason of a condition (`access`); empty: it is allowed"""
    needs_approval: bool = False


class UnknownMember(Exception):
    """The entity has no such member."""


async def load_member(registry: Registry, membership_id: str, *, actor: Actor) -> Member:
    """Return a member by the identifier of the membership.

    Raises UnknownMember, also for one of another entity, access.Forbidden, StoreUnavailable. Source: D60, D61
    """
    entity_id = actor.entity_id
    is_one = 0 < len(membership_id) <= _LONGEST_ID and is_storable(membership_id)
    found = await registry.provisioning.member(membership_id) if is_one else None
    if entity_id:
        authorise(actor, "read", Object(kind="membership", entity_id=entity_id))
    if found is None or entity_id not in {"", found.membership.entity_id}:
        raise UnknownMember("there is no such member")
    authorise(actor, "read", Object(kind="membership", entity_id=found.membership.entity_id))
    return found


async def find_member(registry: Registry, entity_id: str, named: str) -> Member | None:
    """Return the member whom a user name means; None for nobody.

    The user name of the account and what the entity wrote are asked together; never the address. What has the form of
    a person's identifier is an account's alone: the entity could write that of another one. Raises AmbiguousName if
    they are those of different members, StoreUnavailable. Source: D68
    """
    if not named or not is_storable(named):
        return None
    query = MemberQuery(entity_id=entity_id, conditions=(("any_user_name", "eq", named),), limit=_CANDIDATES)
    _, found = await registry.provisioning.members(query)
    if is_user_id(fold_text(named)):
        found = [each for each in found if canonical(each.user.user_name) == canonical(named)]
    known = {each.membership.membership_id: each.name for each in found}
    if known:  # an address identifies whom it invites, and means nobody (D68)
        known |= {
            each.membership.membership_id: each.name for each in await list_invited_at(registry, entity_id, named)
        }
    refuse_several(named, list(known.values()))
    return found[0] if found else None


async def find_person(registry: Registry, entity_id: str, named: str, *, of_entity: bool) -> User | None:
    """Return the person whom an API client means; None for nobody.

    `of_entity`: the entity itself asks, and learns nothing about accounts that are no members. For others the account
    of this name is meant, too. Raises AmbiguousName, StoreUnavailable. Source: D61, D68
    """
    found = await find_member(registry, entity_id, named) if entity_id else None
    account = await registry.directory.user_by_name(named)
    if found is None or (account is not None and account.user_id == found.user.user_id):
        return account
    if account is not None and not of_entity:
        refuse_several(named, [found.name, canonical(account.user_name)])
    return found.user


async def list_members(
    registry: Registry,
    wanted: MemberFilter,
    *,
    actor: EntityAdministrator,
    after: str,
    limit: int,
    before: str = "",
    order: str = "shown_user_name",
    descending: bool = False,
) -> ListPage[MemberSummary]:
    """List members of the actor's entity, by default by user name.

    `order` is one of MEMBERS. A page costs a few statements. Raises Refused for an unknown place,
    access.Forbidden, StoreUnavailable. Source: D53, D61, D83
    """
    if wanted.service_id:
        authorise(actor, "read", Object(kind="assignment", entity_id=actor.entity_id, service_id=wanted.service_id))
    page = await list_records(
        registry, actor, MEMBERS, {"entity_id": actor.entity_id}, order=order, descending=descending,
        search=wanted.search, state=wanted.state, service_id=wanted.service_id, after=after, before=before, limit=limit,
        count_to=MOST_COUNTED,
    )  # fmt: skip
    keys = [each.membership.key for each in page.found]
    levels = await registry.directory.read(Administrator, keys)
    counts: Counter[str] = Counter()
    roles = await registry.provisioning.roles(actor.entity_id, [each.user.user_id for each in page.found])
    for user_id, service_id, count in roles:
        if _sees(actor, "assignment", service_id):
            counts[user_id] += count
    found = [
        MemberSummary(member=each, level=levels[key].level if key in levels else "", roles=counts[each.user.user_id])
        for each, key in zip(page.found, keys, strict=True)
    ]
    return msgspec.structs.replace(page, found=tuple(found))


async def query_members(registry: Registry, query: MemberQuery, *, actor: Actor) -> tuple[int, list[Member]]:
    """Return members of an entity, and the number of all.

    Raises Refused for too many conditions, access.Forbidden, StoreUnavailable. Source: RFC 7644 §3.4.2, D60
    """
    authorise(actor, "read", Object(kind="membership", entity_id=query.entity_id))
    if len(query.conditions) > PROVISIONING_CONDITIONS:
        raise Refused(f"a filter has at most {PROVISIONING_CONDITIONS} conditions")
    if not all(is_storable(value) for _, _, value in query.conditions):
        return 0, []
    return await registry.provisioning.members(query)


async def list_invited_at(registry: Registry, entity_id: str, address: str) -> list[Member]:
    """Return the first few open invitations of an entity to an address.

    Raises StoreUnavailable. Source: D68
    """
    if "@" not in address:
        return []
    at_address: tuple[MemberCondition, ...] = (("email", "eq", address), ("invited", "eq", "true"))
    query = MemberQuery(entity_id=entity_id, conditions=at_address, limit=_CANDIDATES)
    _, found = await registry.provisioning.members(query)
    return found


def other_address(found: Member) -> Phrase:
    """The refusal of a line that gives a member another address. Source: D68"""
    return phrase(
        "{name} has another e-mail address here. Correct the address, or the user name if you mean somebody else.",
        name=found.name,
    )


def refuse_several(named: str, candidates: Sequence[str]) -> None:
    """Refuse a user name that means several people. Raises AmbiguousName. Source: D68"""
    if len(candidates) > 1:
        raise AmbiguousName(
            phrase(
                "{name} can mean several people here: {candidates}. Use another user name of that person, or open the person's page.",
                name=named,
                candidates=tuple(candidates),
            )
        )


async def load_access(
    registry: Registry, of: Membership, *, actor: EntityAdministrator, after: str, limit: int
) -> MemberAccess:
    """Return level and access of a member, a page of roles.

    Only what the actor may see. Raises Refused for an unknown place, access.Forbidden, StoreUnavailable. Source: D53,
    D56, D61
    """
    authorise(actor, "read", Object(kind="membership", entity_id=of.entity_id, user_id=of.user_id))
    directory, where = registry.directory, {"user_id": of.user_id, "entity_id": of.entity_id}
    rows = await directory.page(Assignment, where, after=parse_place(after, 6), limit=limit + 1)
    page = cut_page(rows, limit, [format_place(row.key) for row in rows])
    seen = [row for row in page.found if _sees(actor, "assignment", row.service_id)]
    others: list[ThirdPartyAssignment] = []
    if _sees(actor, "third-party row"):
        others = await directory.page(ThirdPartyAssignment, where, limit=limit)
    return MemberAccess(
        administrator=await directory.find(Administrator, *of.key),
        roles=ListPage(found=await load_roles(directory, seen), after=page.after),
        for_others=await load_roles(directory, others),
    )


async def preview_change(registry: Registry, of: Membership, *, actor: EntityAdministrator, end: bool) -> ChangePreview:
    """Return whether an actor may change a membership, or end it.

    To suspend one counts as its end, to restore it as a change. Raises StoreUnavailable. Source: D53, D54, D55
    """
    becomes = None if end else msgspec.structs.replace(of, changed_at=int(actor.now))
    change = Change(of, becomes)
    try:
        found = await authorise_changes(registry, assume_recent(actor), [change])
    except Forbidden as error:
        return ChangePreview(refusal=error.reason)
    return ChangePreview(needs_approval=bool(found.needing))


def may_give_access(of: Membership, held_level: Administrator | None, *, actor: EntityAdministrator) -> bool:
    """Return whether an actor may give a member roles at some service.

    With a recent sign-in. Source: D53, D54
    """
    some = "" if actor.level != "sub_administrator" or actor.services == "all" else next(iter(actor.services), "")
    thing = Object(
        kind="assignment",
        entity_id=of.entity_id,
        service_id=some or "-",
        user_id=of.user_id,
        level=held_level.level if held_level is not None else "",
        belongs=True,
    )
    return is_allowed(assume_recent(actor), "write", thing)


def may_invite(actor: EntityAdministrator) -> bool:
    """Return whether an actor may invite people. Source: D53, D60"""
    thing = Object(
        kind="membership", entity_id=actor.entity_id, user_id="-", level="", invites=True, takes_last_owner=False
    )
    return is_allowed(assume_recent(actor), "write", thing)


def may_send_again(of: Membership, *, actor: EntityAdministrator) -> bool:
    """Return whether an actor may have an invitation sent again. Source: D53, D60"""
    thing = Object(kind="invitation", entity_id=of.entity_id, user_id=of.user_id)
    return of.invited and is_allowed(assume_recent(actor), "write", thing)


def _sees(actor: EntityAdministrator, kind: ObjectKind, service_id: str = "") -> bool:
    return is_allowed(actor, "read", Object(kind=kind, entity_id=actor.entity_id, service_id=service_id))


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

    with translate_refusals():
        return await write_changes(registry, actor, made, asking=asking, once_checked=count)


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
        return await write_changes(registry, actor, changes, asking=asking)


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


MemberSwitch: TypeAlias = Literal["suspend", "restore", "end"]
MemberAction: TypeAlias = MemberSwitch | Assignment
"""what is done with each member; a role, of nobody yet, is given"""
MOST_SELECTED: Final = 500
"""members that are changed at once: the page that asks looks at each of them"""
_PAGE: Final = 100


class LeftOut(msgspec.Struct, frozen=True):
    """A selected member whom the action does not change."""

    member: Member
    refusal: str
    """the reason of a condition (`access`)

    Empty: the action does not fit the member's state, or they have the role already.
    """


class BulkPreview(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of an action on selected members."""

    members: tuple[Member, ...]
    changes: tuple[Change, ...]
    """of each of them"""
    left_out: tuple[LeftOut, ...]
    needs_approval: bool
    digest: str
    """of the members as they were read"""


class BulkOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of many changes."""

    done: int
    """changes that were made or requested"""
    requests: tuple[ChangeRequest, ...]
    stopped: Exception | None = None
    """what the next part was refused with"""


async def select_members(
    registry: Registry, membership_ids: Sequence[str], *, actor: EntityAdministrator
) -> list[Member]:
    """Load members of the actor's entity by membership.

    Raises UnknownMember, Refused if they are too many, access.Forbidden, StoreUnavailable. Source: D81
    """
    _limit(len(membership_ids))
    return [await load_member(registry, each, actor=actor) for each in membership_ids]


async def select_filtered(registry: Registry, wanted: MemberFilter, *, actor: EntityAdministrator) -> list[Member]:
    """Load every member that a filter finds.

    Raises Refused if they are too many, access.Forbidden, StoreUnavailable. Source: D81
    """

    def read(after: str, limit: int) -> Awaitable[ListPage[MemberSummary]]:
        return list_members(registry, wanted, actor=actor, after=after, limit=limit)

    found = [each.member async for each in read_all(read, most=MOST_SELECTED + 1, at_once=_PAGE)]
    _limit(len(found))
    return found


def _limit(count: int) -> None:
    if count > MOST_SELECTED:
        raise Refused(phrase("change at most {count} people at once: narrow the list", count=MOST_SELECTED))


async def preview_bulk(
    registry: Registry, selected: Sequence[Member], action: MemberAction, *, actor: EntityAdministrator, today: str
) -> BulkPreview:
    """The members whom an action changes or leaves out.

    Every member is authorised. `today` as in a record. Raises Refused if a role may be given to nobody,
    StoreUnavailable. Source: D81
    """
    members: list[Member] = []
    changes: list[Change] = []
    left_out: list[LeftOut] = []
    waits = False
    for each, change in zip(selected, await _plan(registry, selected, action, actor.now, today), strict=True):
        if change is None:
            left_out.append(LeftOut(each, ""))
            continue
        try:
            found = await authorise_changes(registry, assume_recent(actor), [change])
        except Forbidden as error:
            left_out.append(LeftOut(each, error.reason))
        else:
            members.append(each)
            changes.append(change)
            waits = waits or bool(found.needing)
        await asyncio.sleep(0)  # SQLite has answered within this task: others have their turn
    await check_changes(registry, actor, changes)
    digest = sha256(msgspec.json.encode([(action, each.membership) for each in members])).hexdigest()
    return BulkPreview(
        members=tuple(members), changes=tuple(changes), left_out=tuple(left_out), needs_approval=waits, digest=digest
    )


async def _plan(
    registry: Registry, selected: Sequence[Member], action: MemberAction, now: float, today: str
) -> list[Change | None]:
    """The change of each member; None if the action does not fit."""
    if isinstance(action, Assignment):
        rows = [replace(action, user_id=each.user.user_id) for each in selected]
        held = await registry.directory.read(Assignment, [row.key for row in rows])
        present = {key for key, row in held.items() if row.end_date >= today}
        return [None if row.key in present else Change(held.get(row.key), row) for row in rows]

    def switch(member: Member) -> Change | None:
        was = member.membership
        if action == "end":
            return Change(was, None)
        if was.invited or was.enabled is (action == "restore"):
            return None
        return Change(was, replace(was, enabled=not was.enabled, changed_at=int(now)))

    return [switch(each) for each in selected]


async def write_bulk(
    registry: Registry, preview: BulkPreview, *, actor: EntityAdministrator, asking: RequestDetails
) -> BulkOutcome:
    """Change many members as it was previewed, or request it.

    The members must be as the preview showed them, such as the address of an invitation. Roles and levels end with a
    membership. The rest is as in `write_selected`. Source: D68, D81
    """
    shown = {
        each.membership.key: Precondition(Membership, each.membership.key, each.membership) for each in preview.members
    }

    def guard_shown(part: Sequence[Change]) -> list[StoreChange]:
        return [shown[each.key[:2]] for each in part]

    return await write_selected(registry, actor, preview.changes, asking=asking, seen=guard_shown)


async def write_selected(
    registry: Registry,
    actor: EntityAdministrator,
    changes: Sequence[Change],
    *,
    asking: RequestDetails,
    seen: Callable[[Sequence[Change]], Iterable[StoreChange]] | None = None,
) -> BulkOutcome:
    """Make the changes of a selection, or request them.

    A hundred are one transaction or one request, all or nothing; after a part that is refused nothing more is changed.
    `seen` is as in `write_parts`. Raises what the first part is refused with, as `submit_switch`. Source: D55, D81
    """
    parts = cut_parts(changes)
    writing = write_parts(registry, actor, parts, batch=actor.request_id, asking=asking, seen=seen)
    done = 0
    requests: list[ChangeRequest] = []
    try:
        with translate_refusals():
            async for number, request in writing:
                done += len(parts[number - 1])
                requests += [request] if request is not None else []
    except Exception as refused:
        if not done:
            raise
        return BulkOutcome(done=done, requests=tuple(requests), stopped=refused)
    return BulkOutcome(done=done, requests=tuple(requests))
