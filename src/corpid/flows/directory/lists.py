"""Pages of people, entities, services, roles and administrators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, Literal, TypeVar
from urllib.parse import quote, unquote

import msgspec

from corpid.flows.directory.finding import (
    FIRST_CHARACTER,
    LAST,
    authorise_list,
    authorise_on_person,
    filter_visible,
    find_entity,
    find_service,
    find_user,
    read_shown_key,
)
from corpid.flows.directory.write import Refused, read_grants
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.actors import DeploymentOperator
from corpid.rules.directory.entity_choice import search_text, search_words
from corpid.rules.directory.names import is_storable
from corpid.rules.directory.names import user_name as mapped
from corpid.rules.directory.records import (
    Administrator,
    AdministratorServices,
    Assignment,
    Entity,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.rules.directory.roles import RoleRecords

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from corpid.rules.directory.actors import Actor
    from corpid.stores.sql.directory import Directory, L, N
    from corpid.stores.sql.registry import Registry

T = TypeVar("T")
S = TypeVar("S")

_ROUNDS: Final = 20
"""how often rows are read for one page of those that fit"""
_A_USER: Final = Object(kind="user")


class ListPage(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A page of a list.

    `after` names its last record if there are more.
    """

    found: tuple[T, ...]
    after: str = ""


class ListFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The records that a list is narrowed to; empty texts narrow nothing."""

    user: str = ""
    """a user name"""
    entity: str = ""
    """of third parties the third party"""
    client_entity: str = ""
    service: str = ""


class EntityMember(msgspec.Struct, frozen=True, kw_only=True):
    """A person of an entity, with their level there."""

    user: User
    membership: Membership
    level: str = ""


class Appointment(msgspec.Struct, frozen=True, kw_only=True):
    """An administrator, with the records that the level rests on."""

    administrator: Administrator
    user: User
    entity: Entity
    membership: Membership


class Belonging(msgspec.Struct, frozen=True, kw_only=True):
    """An entity of a person, with their level there."""

    entity: Entity
    membership: Membership
    level: str = ""
    services: AdministratorServices = ()


async def list_people(registry: Registry, actor: Actor, *, search: str, after: str, limit: int) -> ListPage[User]:
    """List people by user name; `search` is its beginning.

    Raises Refused, access.Forbidden, StoreUnavailable. Source: D51
    """
    authorise_list(actor, _A_USER)
    page = await _list_named(registry, User, search=_map_name(search), after=_map_name(after), limit=limit)
    return await _show(registry, actor, page)


async def list_people_by_name(registry: Registry, actor: Actor, *, name: str, after: str, limit: int) -> ListPage[User]:
    """List people by name.

    `name` is its beginning, in small or capital letters; `after` is a user name. Raises Refused if there is nobody of
    it, access.Forbidden, StoreUnavailable. Source: R-12.4
    """
    return await _search_people(registry, actor, registry.directory.people_by_name, "name", name, after, limit)


async def list_people_by_email(
    registry: Registry, actor: Actor, *, email: str, after: str, limit: int
) -> ListPage[User]:
    """List people by e-mail address.

    `email` is its beginning, in small or capital letters; `after` is a user name. Raises Refused if there is nobody of
    it, access.Forbidden, StoreUnavailable. Source: D61
    """
    return await _search_people(registry, actor, registry.directory.people_by_email, "email", email, after, limit)


async def _search_people(
    registry: Registry,
    actor: Actor,
    read: Callable[..., Awaitable[list[User]]],
    member: Literal["name", "email"],
    beginning: str,
    after: str,
    limit: int,
) -> ListPage[User]:
    authorise_list(actor, _A_USER)
    _check_storable(beginning, "address" if member == "email" else member)
    before = await _find_place(registry, actor, after)
    start = (getattr(before, member), before.user_id) if before else ("", "")
    found = await read(first=beginning, until=beginning + LAST, after=start, limit=limit + 1)
    return await _show(registry, actor, cut_page(found, limit, [each.user_name for each in found]))


async def _find_place(registry: Registry, actor: Actor, user_name: str) -> User | None:
    """The last person of the page before, seen or not (D53)."""
    if not user_name:
        return None
    if not isinstance(actor, DeploymentOperator):
        return await find_user(registry, user_name, actor=actor)
    found = await registry.directory.user_by_name(_map_name(user_name))
    if found is None:
        raise Refused("--after is not a place in this list: copy it from the last line of a list")
    return found


async def _show(registry: Registry, actor: Actor, page: ListPage[User]) -> ListPage[User]:
    found = await filter_visible(registry, actor, _A_USER, page.found, lambda each: each.user_id)
    return ListPage(found=found, after=page.after)


def _check_storable(text: str, member: str) -> None:
    if not is_storable(text):
        raise Refused(f"this has characters that no {member} has: leave them out")


async def list_members(
    registry: Registry, actor: Actor, entity_id: str, *, search: str, after: str, limit: int
) -> ListPage[EntityMember]:
    """List the people of an entity by user name.

    `search` is its beginning. Raises Refused if there is no such entity, access.Forbidden, StoreUnavailable. Source:
    D51, D53
    """
    await find_entity(registry, entity_id, actor=actor)
    thing = Object(kind="membership", entity_id=entity_id)
    authorise_list(actor, thing)
    first, until = _find_bounds(_map_name(search), _map_name(after))
    users = await registry.directory.members(entity_id, first=first, until=until, limit=limit + 1)
    keys = [(user.user_id, entity_id) for user in users]
    held = await registry.directory.read(Membership, keys)
    levels = await registry.directory.read(Administrator, keys)
    found = [
        EntityMember(user=user, membership=held[key], level=levels[key].level if key in levels else "")
        for user, key in zip(users, keys, strict=True)
        if key in held
    ]
    page = cut_page(found, limit, [each.user.user_name for each in found])
    seen = await filter_visible(registry, actor, thing, page.found, lambda each: each.user.user_id)
    return ListPage(found=seen, after=page.after)


async def list_entities(registry: Registry, actor: Actor, *, search: str, after: str, limit: int) -> ListPage[Entity]:
    """List entities by identifier; `search` is its beginning.

    Raises access.Forbidden, StoreUnavailable. Source: R-14.2
    """
    authorise(actor, "read", Object(kind="entity"))
    return await _list_named(registry, Entity, search=search, after=after, limit=limit)


async def list_entities_by_name(
    registry: Registry, actor: Actor, *, name: str, after: str, limit: int
) -> ListPage[Entity]:
    """List entities by name; `name` is its beginning, however it is written.

    `after` is an identifier. Raises Refused if there is none of it, access.Forbidden, StoreUnavailable. Source: R-12.4
    """
    authorise(actor, "read", Object(kind="entity"))
    _check_storable(name, "name")
    before = await find_entity(registry, after, actor=actor) if after else None
    first = " ".join(search_words(name))
    place = (search_text(before), before.entity_id) if before else ("", "")
    found = await registry.directory.entities_by_name(first=first, until=first + LAST, after=place, limit=limit + 1)
    return cut_page(found, limit, [each.entity_id for each in found])


async def list_entities_by_number(
    registry: Registry, actor: Actor, *, number: str, after: str, limit: int
) -> ListPage[Entity]:
    """List entities by registration number; `number` is its beginning.

    `after` is an identifier. Raises Refused if there is none of it, access.Forbidden, StoreUnavailable. Source: R-12.4
    """
    authorise(actor, "read", Object(kind="entity"))
    _check_storable(number, "number")
    before = await find_entity(registry, after, actor=actor) if after else None
    place = (before.registration_number, before.entity_id) if before else ("", "")
    found = await registry.directory.entities_by_number(first=number, until=number + LAST, after=place, limit=limit + 1)
    return cut_page(found, limit, [each.entity_id for each in found])


async def list_services(registry: Registry, actor: Actor, *, search: str, after: str, limit: int) -> ListPage[Service]:
    """List services by identifier; `search` is its beginning.

    Raises access.Forbidden, StoreUnavailable. Source: R-14.1
    """
    authorise(actor, "read", Object(kind="service"))
    return await _list_named(registry, Service, search=search, after=after, limit=limit)


async def list_roles(
    registry: Registry, actor: Actor, wanted: ListFilter, *, after: str, limit: int
) -> ListPage[RoleRecords]:
    """List roles of people for their entities.

    Raises Refused if something is named that there is not, access.Forbidden, StoreUnavailable. Source: D23, D50
    """
    thing = Object(kind="assignment")
    authorise_list(actor, thing)
    where = await _read_filter(registry, actor, wanted)
    rows = await _read_page(registry, Assignment, where, after=after, limit=limit, width=6)
    seen = await filter_visible(registry, actor, thing, rows.found, lambda each: each.user_id)
    return ListPage(found=await load_roles(registry.directory, seen), after=rows.after)


async def list_third_party_roles(
    registry: Registry, actor: Actor, wanted: ListFilter, *, after: str, limit: int
) -> ListPage[RoleRecords]:
    """List roles of third parties' people for client entities.

    Raises Refused if something is named that there is not, access.Forbidden, StoreUnavailable. Source: D23, R-21
    """
    authorise(actor, "read", Object(kind="third-party row"))
    where = await _read_filter(registry, actor, wanted)
    rows = await _read_page(registry, ThirdPartyAssignment, where, after=after, limit=limit, width=7)
    return ListPage(found=await load_roles(registry.directory, rows.found), after=rows.after)


async def list_grants(
    registry: Registry, actor: Actor, wanted: ListFilter, *, after: str, limit: int
) -> ListPage[ThirdPartyGrant]:
    """List grants of client entities to third parties.

    Raises Refused if something is named that there is not, access.Forbidden, StoreUnavailable. Source: R-21
    """
    authorise(actor, "read", Object(kind="grant"))
    where = await _read_filter(registry, actor, wanted)
    return await _read_page(registry, ThirdPartyGrant, where, after=after, limit=limit, width=6)


async def list_memberships(
    registry: Registry, actor: Actor, user: User, *, after: str, limit: int
) -> ListPage[Belonging]:
    """List the entities of a person by identifier.

    Raises access.Forbidden, StoreUnavailable. Source: D50, D53
    """
    await authorise_on_person(registry, actor, "read", Object(kind="membership", user_id=user.user_id))
    page = await _read_page(registry, Membership, {"user_id": user.user_id}, after=after, limit=limit, width=2)
    known = await registry.directory.read(Entity, [row.key[1:] for row in page.found])
    levels = await registry.directory.read(Administrator, [row.key for row in page.found])
    found = []
    for row in page.found:
        entity, held = known.get(row.key[1:]), levels.get(row.key)
        if entity is not None:
            level, services_of = (held.level, held.services) if held else ("", ())
            found.append(Belonging(entity=entity, membership=row, level=level, services=services_of))
    return ListPage(found=tuple(found), after=page.after)


async def list_administrators(
    registry: Registry, actor: Actor, wanted: ListFilter, *, after: str, limit: int
) -> ListPage[Appointment]:
    """List administrators of entities.

    Raises Refused if something is named that there is not, access.Forbidden, StoreUnavailable. Source: D53
    """
    thing = Object(kind="administrator")
    authorise_list(actor, thing)
    where = await _read_filter(registry, actor, wanted)
    page = await _read_page(registry, Administrator, where, after=after, limit=limit, width=2)
    seen = await filter_visible(registry, actor, thing, page.found, lambda each: each.user_id)
    directory = registry.directory
    users = await directory.read(User, {row.key[:1] for row in seen})
    held = await directory.read(Entity, {row.key[1:] for row in seen})
    belonging = await directory.read(Membership, {row.key for row in seen})
    found = [
        Appointment(administrator=row, user=users[row.key[:1]], entity=held[row.key[1:]], membership=belonging[row.key])
        for row in seen
        if row.key[:1] in users and row.key[1:] in held and row.key in belonging
    ]
    return ListPage(found=tuple(found), after=page.after)


async def _read_filter(registry: Registry, actor: Actor, wanted: ListFilter) -> dict[str, str]:
    where: dict[str, str] = {}
    if wanted.user:
        where["user_id"] = (await find_user(registry, wanted.user, actor=actor)).user_id
    for member, entity_id in (("entity_id", wanted.entity), ("client_entity_id", wanted.client_entity)):
        if entity_id:
            where[member] = (await find_entity(registry, entity_id, actor=actor)).entity_id
    if wanted.service:
        where["service_id"] = (await find_service(registry, wanted.service, actor=actor)).service_id
    return where


async def load_roles(
    directory: Directory, rows: Sequence[Assignment | ThirdPartyAssignment]
) -> tuple[RoleRecords, ...]:
    """Return the rows with the records that they depend on.

    One that has lost it meanwhile is left out. Raises StoreUnavailable. Source: D50
    """
    users = await directory.read(User, {(row.user_id,) for row in rows})
    memberships = await directory.read(Membership, {(row.user_id, row.entity_id) for row in rows})
    services_of = await directory.read(Service, {(row.service_id,) for row in rows})
    clients = {(row.client_entity_id,) for row in rows if isinstance(row, ThirdPartyAssignment)}
    known = await directory.read(Entity, clients | {(row.entity_id,) for row in rows})
    granted = {
        between: tuple(await read_grants(directory, between))
        for between in {
            (row.client_entity_id, row.entity_id, row.service_id)
            for row in rows
            if isinstance(row, ThirdPartyAssignment)
        }
    }
    found = []
    for row in rows:
        client_id = row.client_entity_id if isinstance(row, ThirdPartyAssignment) else ""
        user, service = users.get((row.user_id,)), services_of.get((row.service_id,))
        entity, client = known.get((row.entity_id,)), known.get((client_id,))
        membership = memberships.get((row.user_id, row.entity_id))
        if user and service and entity and membership and (client or not client_id):
            found.append(
                RoleRecords(
                    row=row, user=user, entity=entity, membership=membership, service=service,
                    client_entity=client, grants=granted.get((client_id, row.entity_id, row.service_id), ()),
                )
            )  # fmt: skip
    return tuple(found)


async def _list_named(registry: Registry, kind: type[N], *, search: str, after: str, limit: int) -> ListPage[N]:
    _check_storable(search + after, "identifier")
    first, until = _find_bounds(search, after)
    found = await registry.directory.named(kind, first=first, until=until, limit=limit + 1)
    return cut_page(found, limit, [read_shown_key(each) for each in found])


async def _read_page(
    registry: Registry, kind: type[L], where: Mapping[str, str], *, after: str, limit: int, width: int
) -> ListPage[L]:
    found = await registry.directory.page(kind, where, after=parse_place(after, width), limit=limit + 1)
    return cut_page(found, limit, [format_place(each.key) for each in found])


async def search_page(
    read: Callable[[str, int], Awaitable[Sequence[S]]],
    place_of: Callable[[S], str],
    fits: Callable[[S], bool],
    *,
    after: str,
    at_once: int,
    limit: int,
) -> ListPage[S]:
    """Read rows until enough fit, in a bounded number of rounds.

    There may be fewer than `limit` although more follow. Raises StoreUnavailable. Source: D53
    """
    found: list[S] = []
    for _ in range(_ROUNDS):
        rows = await read(after, at_once)
        found += filter(fits, rows)
        if len(rows) < at_once or len(found) > limit:
            return cut_page(found, limit, list(map(place_of, found)))
        after = place_of(rows[-1])
    page = cut_page(found, limit, list(map(place_of, found)))
    return ListPage(found=page.found, after=page.after or after)


def cut_page(found: Sequence[S], limit: int, places: Sequence[str]) -> ListPage[S]:
    """Limit results to one page.

    It is one more than the page may have, if there are more. `places` are those of each.
    """
    return ListPage(found=tuple(found[:limit]), after=places[limit - 1] if len(found) > limit else "")


def format_place(key: Sequence[str]) -> str:
    """Return the text of a key's place, which `parse_place` reads."""
    return "/".join(quote(part, safe="") for part in key)


def parse_place(after: str, width: int) -> tuple[str, ...]:
    """Return the key after which a page begins.

    Raises Refused.
    """
    parts = tuple(unquote(part) for part in after.split("/")) if after else ("",) * width
    if len(parts) != width or not is_storable("".join(parts)):
        raise Refused("--after is not a place in this list: copy it from the last line of a list")
    return parts


def _find_bounds(search: str, after: str) -> tuple[str, str]:
    """Return the bounds of keys that begin with `search`, after `after`."""
    return max(search, after + FIRST_CHARACTER if after else ""), search + LAST


def _map_name(text: str) -> str:
    try:
        return mapped(text) if text else ""
    except ValueError as error:
        raise Refused(f"{text!r}: {error}") from None
