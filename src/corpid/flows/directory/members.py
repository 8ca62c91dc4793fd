"""Members of an entity: found, listed, their access, possible changes (D53, D60, D61)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from corpid.flows.directory.actors import assume_recent, is_allowed
from corpid.flows.directory.lists import ListPage, cut_page, format_place, list_records, load_roles, parse_place
from corpid.flows.directory.write import Refused, authorise_changes
from corpid.rules.directory.access import Forbidden, Level, Object, ObjectKind, authorise
from corpid.rules.directory.lists import MEMBERS, MOST_COUNTED
from corpid.rules.directory.names import canonical, fold_text, is_storable, is_user_id
from corpid.rules.directory.queries import Member, MemberCondition, MemberQuery, MemberState
from corpid.rules.directory.records import Administrator, Assignment, Change, Membership, ThirdPartyAssignment, User
from corpid.rules.directory.roles import RoleRecords
from corpid.rules.limits import PROVISIONING_CONDITIONS
from corpid.texts import Phrase, phrase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.rules.directory.actors import Actor, EntityAdministrator
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
