"""Members of an entity: lists, access, possible changes (D53, D61)."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from corpid.flows.directory.lists import ListPage, as_place, cut_page, place, with_records
from corpid.flows.directory.provisioning import Member, MemberState, invited_at, members_by_name
from corpid.flows.directory.write import Refused, authorise_changes
from corpid.rules.directory.access import Forbidden, Level, Object, authorise
from corpid.rules.directory.approvals import change_needs_approval
from corpid.rules.directory.effect import Role
from corpid.rules.directory.names import is_storable
from corpid.rules.directory.person_names import canonical
from corpid.rules.directory.plan import Change
from corpid.rules.directory.queries import SEARCH_WORDS, MemberQuery, MemberSearch
from corpid.rules.directory.records import Administrator, Assignment, ThirdPartyAssignment
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from corpid.rules.directory.access import ObjectKind
    from corpid.rules.directory.actors import EntityAdministrator
    from corpid.rules.directory.queries import StoredMember
    from corpid.rules.directory.records import Entity, Membership, User
    from corpid.stores.sql.registry import Registry

_EXAMINED_AT_ONCE: Final = 2000
_PARTS: Final = 25
"""of so many members each: one page of a search examines 50,000 at most"""
_MOST_ROLES: Final = 1000
"""of one member, that are counted"""
_CANDIDATES: Final = 5
"""people whom a refusal lists, if a user name means several"""
_CHARACTERS: Final = 100
"""of a search"""


class MemberFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Members that a list is narrowed to; empty texts narrow nothing."""

    search: str = ""
    """words of name, user name or e-mail address"""
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
    roles: ListPage[Role]
    for_others: tuple[Role, ...]
    """for client entities; none if the actor may not see them"""


class ChangePreview(msgspec.Struct, frozen=True, kw_only=True):
    """The refusal of a change, or its need for approval."""

    refusal: str = ""
    """the reason of a condition (`access_conditions`); empty: it is allowed"""
    needs_approval: bool = False


class MembershipEnd(msgspec.Struct, frozen=True, kw_only=True):
    """Level and number of roles that end with a membership."""

    administrator: Administrator | None
    roles: int
    """counted up to a thousand"""
    for_others: int


async def find_member(registry: Registry, entity_id: str, named: str) -> Member | None:
    """Return the member whom a user name means; None for nobody.

    The user name of the account and what the entity wrote are asked together; never the address. Raises AmbiguousName
    if they are those of different members, StoreUnavailable. Source: D68
    """
    if not named or not is_storable(named):
        return None
    query = MemberQuery(entity_id=entity_id, conditions=(("any_user_name", "eq", named),), limit=_CANDIDATES)
    _, stored = await registry.provisioning.members(query)
    found = [Member(membership=each.membership, user=each.user) for each in stored]
    known = {each.membership.membership_id: each.name for each in found}
    if known:  # an address identifies whom it invites, and means nobody (D68)
        known |= {each.membership.membership_id: each.name for each in await invited_at(registry, entity_id, named)}
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


async def list_members(
    registry: Registry, wanted: MemberFilter, *, actor: EntityAdministrator, after: str, limit: int
) -> ListPage[MemberSummary]:
    """List members of the actor's entity by user name.

    A page costs a few statements; a search examines 50,000 members at most, and may then return fewer although more
    follow. Raises Refused for an unknown place, access.Forbidden, StoreUnavailable. Source: D53, D61
    """
    entity_id = actor.entity_id
    words = wanted.search[:_CHARACTERS].split()[:SEARCH_WORDS]
    if wanted.service_id:
        authorise(actor, "read", Object(kind="assignment", entity_id=entity_id, service_id=wanted.service_id))
    if not all(map(is_storable, (wanted.search, wanted.service_id))):
        return ListPage(found=())
    if words or wanted.state or wanted.service_id:
        authorise(actor, "read", Object(kind="membership", entity_id=entity_id))
        search = MemberSearch(entity_id=entity_id, words=tuple(words), state=wanted.state, service_id=wanted.service_id)
        page = await _searched(registry, search, after, limit)
    else:
        page = await members_by_name(registry, entity_id, actor=actor, after=after, limit=limit)
    keys = [each.membership.key for each in page.found]
    levels = await registry.directory.read(Administrator, keys)
    counts = await _counted(registry, actor, [each.user.user_id for each in page.found])
    found = [
        MemberSummary(member=each, level=levels[key].level if key in levels else "", roles=counts[each.user.user_id])
        for each, key in zip(page.found, keys, strict=True)
    ]
    return ListPage(found=tuple(found), after=page.after)


async def _searched(registry: Registry, search: MemberSearch, after: str, limit: int) -> ListPage[Member]:
    """Search part by part, so that no statement takes long."""
    name, last = place(after, 2)
    start: tuple[str, str] | None = (name, last)
    found: list[tuple[StoredMember, tuple[str, str]]] = []
    for _ in range(_PARTS):
        if start is None or len(found) > limit:
            break
        part, start = await registry.provisioning.search(
            search, after=start, limit=limit + 1 - len(found), examined=_EXAMINED_AT_ONCE
        )
        found += part
        await asyncio.sleep(0)
    page = cut_page(
        [Member(membership=stored.membership, user=stored.user) for stored, _ in found],
        limit,
        [as_place(each) for _, each in found],
    )
    stopped = start is not None and len(found) <= limit
    return ListPage(found=page.found, after=as_place(start)) if stopped and start else page


async def _counted(registry: Registry, actor: EntityAdministrator, user_ids: Collection[str]) -> Counter[str]:
    """Count the roles of people that the actor sees."""
    counts: Counter[str] = Counter()
    for user_id, service_id, count in await registry.provisioning.roles(actor.entity_id, user_ids):
        if _sees(actor, "assignment", service_id):
            counts[user_id] += count
    return counts


async def load_access(
    registry: Registry, of: Membership, *, actor: EntityAdministrator, after: str, limit: int
) -> MemberAccess:
    """Return level and access of a member, a page of roles.

    Only what the actor may see. Raises Refused for an unknown place, access.Forbidden, StoreUnavailable. Source: D53,
    D56, D61
    """
    authorise(actor, "read", Object(kind="membership", entity_id=of.entity_id, user_id=of.user_id))
    directory, where = registry.directory, {"user_id": of.user_id, "entity_id": of.entity_id}
    rows = await directory.page(Assignment, where, after=place(after, 6), limit=limit + 1)
    page = cut_page(rows, limit, [as_place(row.key) for row in rows])
    seen = [row for row in page.found if _sees(actor, "assignment", row.service_id)]
    others: list[ThirdPartyAssignment] = []
    if _sees(actor, "third-party row"):
        others = await directory.page(ThirdPartyAssignment, where, after=("",) * 7, limit=limit)
    return MemberAccess(
        administrator=(await directory.read(Administrator, [of.key])).get(of.key),
        roles=ListPage(found=await with_records(directory, seen), after=page.after),
        for_others=await with_records(directory, others),
    )


async def ending(registry: Registry, of: Membership, *, actor: EntityAdministrator) -> MembershipEnd:
    """Return what would end with a membership.

    Raises access.Forbidden, StoreUnavailable. Source: D53
    """
    authorise(actor, "read", Object(kind="assignment", entity_id=of.entity_id))
    directory, where = registry.directory, {"user_id": of.user_id, "entity_id": of.entity_id}
    return MembershipEnd(
        administrator=(await directory.read(Administrator, [of.key])).get(of.key),
        roles=len(await directory.page(Assignment, where, after=("",) * 6, limit=_MOST_ROLES)),
        for_others=len(await directory.page(ThirdPartyAssignment, where, after=("",) * 7, limit=_MOST_ROLES)),
    )


async def possible_change(
    registry: Registry, of: Membership, *, actor: EntityAdministrator, end: bool
) -> ChangePreview:
    """Return whether an actor may change a membership, or end it.

    To suspend one counts as its end, to restore it as a change. Raises StoreUnavailable. Source: D53, D54, D55
    """
    recent = msgspec.structs.replace(actor, auth_time=actor.now)
    becomes = None if end else msgspec.structs.replace(of, changed_at=int(actor.now))
    change = Change(verb="remove" if end else "change", kind="membership", key=of.key, was=of, becomes=becomes)
    try:
        found = await authorise_changes(registry, recent, [change])
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
    return _allows(msgspec.structs.replace(actor, auth_time=actor.now), "write", thing)


def may_invite(actor: EntityAdministrator) -> bool:
    """Return whether an actor may invite people. Source: D53, D60"""
    thing = Object(
        kind="membership", entity_id=actor.entity_id, user_id="-", level="", invites=True, takes_last_owner=False
    )
    return _allows(msgspec.structs.replace(actor, auth_time=actor.now), "write", thing)


def may_send_again(of: Membership, *, actor: EntityAdministrator) -> bool:
    """Return whether an actor may have an invitation sent again. Source: D53, D60"""
    thing = Object(kind="invitation", entity_id=of.entity_id, user_id=of.user_id)
    return of.invited and _allows(msgspec.structs.replace(actor, auth_time=actor.now), "write", thing)


def invitation_needs_approval(entity: Entity) -> bool:
    """Return whether an invitation becomes a request. Source: D55"""
    return change_needs_approval(Change(verb="add", kind="membership", key=()), "", entity, None)


def _sees(actor: EntityAdministrator, kind: ObjectKind, service_id: str = "") -> bool:
    return _allows(actor, "read", Object(kind=kind, entity_id=actor.entity_id, service_id=service_id))


def _allows(actor: EntityAdministrator, action: Literal["read", "write"], thing: Object) -> bool:
    try:
        authorise(actor, action, thing)
    except Forbidden:
        return False
    return True
