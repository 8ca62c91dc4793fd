"""Roles of an entity's people: found, given and changed (D53, D54, D55).

By administrators of the entity: what a page asks before its form (which services, which people, whether it may be done
at all), and the list of all roles.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.directory.actors import assume_recent, is_allowed
from corpid.flows.directory.lists import ListPage, UnknownPlace, cut_between, cut_page, format_place, parse_place
from corpid.flows.directory.lists import load_roles as load_role_records
from corpid.flows.directory.write import authorise_changes
from corpid.rules.directory.access import EntityAdministrator, Forbidden, Object, authorise
from corpid.rules.directory.lists import MOST_COUNTED, SERVICES, ListTotal
from corpid.rules.directory.memberships import SEARCH_SERVICES, Member, RoleOrder, RoleSearch
from corpid.rules.directory.names import is_storable
from corpid.rules.directory.objects import key_of, object_id
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Change,
    Entity,
    Service,
    ThirdPartyAssignment,
)
from corpid.rules.directory.role_forms import NO_VALUES, ValuesInUse, is_open_to, most_frequent_values
from corpid.rules.directory.words import words_of_search

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from corpid.stores.sql.registry import Registry

MOST_SERVICES: Final = 1000
MOST_ROLES: Final = 200
"""of one person, that a page shows"""
_MOST_LOOKED_THROUGH: Final = 500
"""roles of an entity at a service, for the values that they have"""
_WIDTH: Final = 6
"""of a role's key"""
_WIDTHS: Final[Mapping[RoleOrder, int]] = {"person": 6, "service": 5, "role": 5, "until": 6}
"""of a place in each order"""
_EXAMINED_AT_ONCE: Final = 2000
_PARTS: Final = 25
"""in which the members of an entity are searched, so that no statement takes long"""


class UnknownRole(Exception):
    """No such role, or none that the actor may see."""


class RoleFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Roles that a list is narrowed to; empty texts narrow nothing."""

    search: str = ""
    """words of name, user name, e-mail address or other details"""
    service_id: str = ""
    role: str = ""
    first: str = ""
    """the earliest last day, as in a record"""
    last: str = ""
    """the latest one; given if the order is `until`"""
    order: RoleOrder = "person"
    descending: bool = False


class EntityRole(msgspec.Struct, frozen=True, kw_only=True):
    """A role of the entity, with its member and service."""

    row: Assignment
    service: Service
    member: Member

    @property
    def id(self) -> str:
        """The identifier of the role in addresses, as in the admin API."""
        return object_id(self.row.key)


async def list_services(registry: Registry, actor: EntityAdministrator, entity: Entity) -> list[Service]:
    """Services at which the actor gives roles.

    By name, of those that the entity may use. Raises access.Forbidden, StoreUnavailable. Source: R-20, D53
    """
    authorise(actor, "read", Object(kind="service"))
    own = actor.services if actor.level == "sub_administrator" else "all"
    if isinstance(own, tuple):
        found = list((await registry.directory.read(Service, [(each,) for each in own])).values())
    else:
        found = await registry.lists.find(SERVICES, limit=MOST_SERVICES)
    return sorted((each for each in found if is_open_to(each, entity)), key=lambda each: each.name.casefold())


async def list_roles(registry: Registry, actor: EntityAdministrator, of: Member) -> ListPage[EntityRole]:
    """Roles of a member that the actor may see, by key.

    Raises access.Forbidden, StoreUnavailable. Source: D53
    """
    where = {"user_id": of.user.user_id, "entity_id": actor.entity_id}
    authorise(actor, "read", Object(kind="membership", entity_id=actor.entity_id, user_id=of.user.user_id))
    rows = await registry.directory.page(Assignment, where, limit=MOST_ROLES + 1)
    page = cut_page(rows, MOST_ROLES, [format_place(row.key) for row in rows])
    known = await registry.directory.read(Service, {(row.service_id,) for row in rows})
    seen = [row for row in page.found if _may_read(actor, row)]
    roles = (
        EntityRole(row=row, service=known[row.service_id,], member=of) for row in seen if (row.service_id,) in known
    )
    return ListPage(found=tuple(roles), after=page.after)


async def list_entity_roles(
    registry: Registry, actor: EntityAdministrator, wanted: RoleFilter, *, after: str, before: str = "", limit: int
) -> ListPage[EntityRole]:
    """Roles of the actor's entity with their people.

    `after` and `before` are places of another page. A page examines a bounded number of members or roles, and may then
    have fewer although more follow. The total is of a list without words. Raises Refused for an
    unknown place, access.Forbidden, StoreUnavailable. Source: D53, D83
    """
    authorise(actor, "read", Object(kind="membership", entity_id=actor.entity_id))
    if not all(map(is_storable, (wanted.search, wanted.service_id, wanted.role))):
        return ListPage(found=())
    search = _build_search(actor, wanted)
    if search is None or (wanted.search.strip() and not search.words):
        return ListPage(found=(), total=ListTotal(count=0))
    search = msgspec.structs.replace(search, backwards=wanted.descending != bool(before))
    start = parse_place(before or after, _WIDTHS[search.order]) if before or after else ()
    rows, stopped = await _search_roles(registry, search, start, limit + 1)
    if wanted.descending != search.backwards:
        rows.reverse()
    page = cut_between(rows, after=after, before=before, limit=limit)
    if stopped:
        page = msgspec.structs.replace(page, **{"before" if before else "after": format_place(stopped)})
    services = await registry.directory.read(Service, {(row.service_id,) for row, _ in page.found})
    found = tuple(
        EntityRole(row=row, member=member, service=services[row.service_id,])
        for row, member in page.found
        if (row.service_id,) in services
    )
    total = None if search.words else await _count(registry, search)
    return ListPage(found=found, after=page.after, before=page.before, total=total)


async def count_entity_roles(
    registry: Registry, actor: EntityAdministrator, wanted: RoleFilter
) -> tuple[dict[tuple[str, str], int], bool]:
    """Numbers of roles by service and name, and whether these are all.

    Raises access.Forbidden, StoreUnavailable. Source: D53, D83
    """
    authorise(actor, "read", Object(kind="membership", entity_id=actor.entity_id))
    search = _build_search(actor, wanted)
    if search is None:
        return {}, True
    counts = await registry.provisioning.count_roles(search, most=MOST_COUNTED + 1)
    found = {(service_id, role): count for service_id, role, count in counts}
    return found, sum(found.values()) <= MOST_COUNTED


async def _count(registry: Registry, search: RoleSearch) -> ListTotal:
    counts = await registry.provisioning.count_roles(search, most=MOST_COUNTED + 1)
    count = sum(each for _, _, each in counts)
    return ListTotal(count=min(count, MOST_COUNTED), exact=count <= MOST_COUNTED)


def _build_search(actor: EntityAdministrator, wanted: RoleFilter) -> RoleSearch | None:
    """The search for roles that the actor may see.

    None if there can be none. Raises access.Forbidden.
    """
    own = actor.services if actor.level == "sub_administrator" and isinstance(actor.services, tuple) else ()
    if actor.level == "sub_administrator" and actor.services != "all" and not own:
        return None
    services = (wanted.service_id,) if wanted.service_id else own[:SEARCH_SERVICES]
    for each in services or ("",):
        authorise(actor, "read", Object(kind="assignment", entity_id=actor.entity_id, service_id=each))
    return RoleSearch(
        entity_id=actor.entity_id,
        words=words_of_search(wanted.search),
        services=services,
        role=wanted.role,
        first=wanted.first,
        last=wanted.last,
        order=wanted.order,
    )


async def _search_roles(
    registry: Registry, search: RoleSearch, start: tuple[str, ...], limit: int
) -> tuple[list[tuple[tuple[Assignment, Member], tuple[str, ...]]], tuple[str, ...]]:
    """Roles with their places, and the place of an early stop.

    It is empty if the search did not stop early. By service it is one search for each, in the order of their names: a
    place begins with its service.
    """
    searches: list[tuple[tuple[str, ...], RoleSearch]] = [((), search)]
    if search.order == "service":
        known = sorted(
            await registry.provisioning.services_with_roles(search.entity_id),
            key=lambda each: (each[1].casefold(), each[0]),
            reverse=search.backwards,
        )
        ordered = [each for each, _ in known if not search.services or each in search.services]
        if start and start[0] not in ordered:
            raise UnknownPlace
        searches = [
            ((each,), msgspec.structs.replace(search, services=(each,)))
            for each in ordered[ordered.index(start[0]) if start else 0 :]
        ]
    found: list[tuple[tuple[Assignment, Member], tuple[str, ...]]] = []
    parts = 0
    for mark, each in searches:
        place: tuple[str, ...] | None = start[len(mark) :]
        start = ()
        while place is not None and len(found) < limit:
            if parts == _PARTS:
                return found, (*mark, *place)
            part, place = await registry.provisioning.search_roles(
                each, after=place, limit=limit - len(found), examined=_EXAMINED_AT_ONCE
            )
            found += [(role, (*mark, *of_role)) for role, of_role in part]
            parts += place is not None
            await asyncio.sleep(0)
    return found, ()


async def load_roles(registry: Registry, actor: EntityAdministrator, identifiers: Iterable[str]) -> list[EntityRole]:
    """Roles by the identifiers of the admin API.

    Those that do not exist, or that the actor may not see, are left out. Raises StoreUnavailable. Source: D53, D59
    """
    keys = [key for each in identifiers if (key := key_of(each, _WIDTH)) is not None and key[1] == actor.entity_id]
    rows = [each for each in (await registry.directory.read(Assignment, keys)).values() if _may_read(actor, each)]
    found = await load_role_records(registry.directory, rows)
    return [
        EntityRole(row=each.row, member=Member(membership=each.membership, user=each.user), service=each.service)
        for each in found
        if isinstance(each.row, Assignment)
    ]


async def find_protected(registry: Registry, actor: EntityAdministrator, found: Sequence[EntityRole]) -> frozenset[str]:
    """The identifiers of those people whose access the actor cannot change.

    Raises StoreUnavailable. Source: D53, D54
    """
    keys = {each.row.key[:2] for each in found}
    levels = await registry.directory.read(Administrator, keys)
    asked = {each.member.user.user_id: each for each in found}
    doubtful = [
        each for each in asked.values() if each.member.user.user_id == actor.user_id or each.row.key[:2] in levels
    ]
    return frozenset(
        [
            each.member.user.user_id
            for each in doubtful
            if await explain_refusal(registry, actor, each.member, each.service)
        ]
    )


async def list_values_in_use(
    registry: Registry, actor: EntityAdministrator, service: Service, *, today: str, client_entity_id: str = ""
) -> ValuesInUse:
    """Values of the entity's roles at a service that have not ended.

    With `client_entity_id` of those that its people have for that entity. `today` as in a record. Of a great many roles
    some are looked through. Raises access.Forbidden, StoreUnavailable. Source: D53, D56, D61
    """
    where = {"entity_id": actor.entity_id, "service_id": service.service_id}
    kind: type[Assignment | ThirdPartyAssignment] = Assignment
    thing = Object(kind="assignment", entity_id=actor.entity_id, service_id=service.service_id)
    if client_entity_id:
        thing = Object(kind="third-party row", entity_id=actor.entity_id, other_entity_id=client_entity_id)
        kind, where = ThirdPartyAssignment, {**where, "client_entity_id": client_entity_id}
    authorise(actor, "read", thing)
    if service.sub_entity == "none" and not service.parameters:
        return NO_VALUES
    rows = await registry.directory.page(kind, where, limit=_MOST_LOOKED_THROUGH)
    return most_frequent_values(row for row in rows if row.end_date >= today)


async def load_role(registry: Registry, actor: EntityAdministrator, identifier: str) -> EntityRole:
    """One role with its person.

    `identifier` is that of the admin API. Raises UnknownRole, also for one that is another entity's or that the actor
    may not see, StoreUnavailable. Source: D53, D59
    """
    for found in await load_roles(registry, actor, [identifier]):
        return found
    raise UnknownRole


async def explain_refusal(registry: Registry, actor: EntityAdministrator, found: Member, at: Service) -> str:
    """The reason against changing a member's roles; empty if none.

    Asked before a form is shown, which needs a recent sign-in itself. Raises StoreUnavailable. Source: D53, D54
    """
    probe = Assignment(user_id=found.user.user_id, entity_id=actor.entity_id, service_id=at.service_id)
    try:
        await authorise_changes(registry, assume_recent(actor), [Change(None, probe)])
    except Forbidden as error:
        return error.reason
    return ""


def plan_replacement(was: Assignment, becomes: Assignment) -> list[Change]:
    """The changes that make one role another one. Source: D55"""
    if was.key == becomes.key:
        return [] if was == becomes else [Change(was, becomes)]
    return [Change(was, None), Change(None, becomes)]


def copy_role(row: Assignment, service: Service, *, user_id: str, today: str) -> Assignment | None:
    """The same role from today for somebody else.

    None for one that has ended, or lacks a mandatory value. Source: R-14.1, D23
    """
    values = {each.name for each in row.parameters if each.value}
    lacking = any(each.mandatory and each.name not in values for each in service.parameters)
    if row.end_date < today or lacking or (service.sub_entity == "mandatory" and not row.sub_entity):
        return None
    return msgspec.structs.replace(row, user_id=user_id, start_date=max(today, row.start_date))


def _may_read(actor: EntityAdministrator, row: Assignment) -> bool:
    return is_allowed(actor, "read", Object(kind="assignment", entity_id=row.entity_id, service_id=row.service_id))
