"""Lists of the admin API's objects, a page at a time (D59)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.directory.finding import FIRST_CHARACTER, LAST
from corpid.flows.directory.members import find_person
from corpid.flows.directory.objects import ApiObject, key_of_record, to_api_object, user_names
from corpid.rules.directory.access import Object, refuse_early
from corpid.rules.directory.names import user_name as mapped
from corpid.rules.directory.records import (
    Entity,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.rules.oauth.records import Client

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.directory.objects import Administration
    from corpid.rules.directory.actors import ApiClient
    from corpid.rules.directory.objects import Resource
    from corpid.stores.sql.registry import Registry

_COLUMNS: Final[Mapping[str, str]] = {
    "user": "user_id", "entity": "entity_id", "third_party": "entity_id", "client_entity": "client_entity_id",
    "service": "service_id",
}  # fmt: skip


class ObjectPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of objects.

    `after` is the place of its last one if there are more.
    """

    found: tuple[ApiObject, ...]
    after: tuple[str, ...] = ()


async def list_objects(
    by: Administration, resource: Resource, wanted: Mapping[str, str], *, after: tuple[str, ...], limit: int
) -> ObjectPage:
    """List objects by key, people by user name.

    Those of an entity by membership. `wanted` are filters of the resource; one that names nothing gives an empty page.
    Raises access.Forbidden, StoreUnavailable. Source: D59, D61
    """
    narrowed = _own(by.actor, resource, wanted)
    refuse_early(by.actor, "read", _object_of_list(by.actor, resource, narrowed))
    if _is_outside(by.actor, resource, narrowed):
        return ObjectPage(found=())
    page, places = await _page(by, resource, narrowed, after, limit + 1)
    users = await user_names(by.registry, page[:limit])
    shown = tuple(to_api_object(by, resource, record, users) for record in page[:limit])
    return ObjectPage(found=shown, after=places[limit - 1] if len(page) > limit else ())


def _is_outside(actor: ApiClient, resource: Resource, wanted: Mapping[str, str]) -> bool:
    """Return whether a third party's person is looked for by user name (D61)."""
    by_name = resource.record is ThirdPartyAssignment and "user" in wanted
    return by_name and bool(actor.entity_id) and wanted.get("third_party", "") != actor.entity_id


def width(by: Administration, resource: Resource, wanted: Mapping[str, str]) -> int:
    """The number of parts of the places in a list. Source: D59"""
    by_name = resource.record is Membership and "entity" in _own(by.actor, resource, wanted)
    return 1 if by_name else 2 if "name" in wanted else resource.width


def _own(actor: ApiClient, resource: Resource, wanted: Mapping[str, str]) -> dict[str, str]:
    """The filters of a list.

    A bound client has those of its entity only.
    """
    narrowed = dict(wanted)
    sides = resource.sides
    if actor.entity_id and resource.record is User:
        sides = ("entity",)
    if actor.entity_id and sides and not any(side in narrowed for side in sides):
        narrowed[sides[0]] = actor.entity_id
    return narrowed


def _object_of_list(actor: ApiClient, resource: Resource, wanted: Mapping[str, str]) -> Object:
    if resource.record is Entity:
        sides = actor.entity_id, ""
    elif resource.record is ThirdPartyGrant:
        sides = wanted.get("client_entity", ""), wanted.get("third_party", "")
    elif resource.record is ThirdPartyAssignment:
        sides = wanted.get("third_party", ""), wanted.get("client_entity", "")
    else:
        sides = wanted.get("entity", ""), ""
    return Object(kind=resource.kind, entity_id=sides[0], other_entity_id=sides[1])


async def _page(
    by: Administration, resource: Resource, wanted: Mapping[str, str], after: tuple[str, ...], limit: int
) -> tuple[list[msgspec.Struct], list[tuple[str, ...]]]:
    """Some records, and the place of each."""
    directory, record = by.registry.directory, resource.record
    if record is Client:
        first, until = _span(wanted.get("search", ""), after, named=False)
        clients = await by.registry.clients.named(first=first, until=until, limit=limit)
        return [*clients], [(client.client_id,) for client in clients]
    if record is Entity and by.actor.entity_id:
        own = await directory.read(Entity, [(by.actor.entity_id,)])
        fits = [
            entity
            for entity in own.values()
            if entity.key > after and entity.entity_id.startswith(wanted.get("search", ""))
        ]
        return [*fits], [entity.key for entity in fits]
    if record in {Membership, User} and "entity" in wanted and not wanted.keys() & {"user", "search"}:
        belonging = await directory.belonging(wanted["entity"], after=after[0] if after else "", limit=limit)
        records = [user if record is User else membership for membership, user in belonging]
        return [*records], [(membership.membership_id,) for membership, _ in belonging]
    if record is User and "name" in wanted:
        place = (after[0], after[1]) if after else ("", "")
        name = wanted["name"]
        people = await directory.people_by_name(first=name, until=name + LAST, after=place, limit=limit)
        return [*people], [(user.name, user.user_id) for user in people]
    if record is User and "entity" in wanted:
        users = await _members(by.registry, wanted, after, limit)
        return [*users], [(user.user_name,) for user in users]
    if record in {Entity, Service, User}:
        first, until = _span(wanted.get("search", ""), after, named=record is User)
        named = await directory.named(record, first=first, until=until, limit=limit)  # type: ignore[type-var]
        places = [(each.user_name,) if isinstance(each, User) else key_of_record(each) for each in named]
        return [*named], places
    if record is Membership and "entity" in wanted:
        return await _memberships(by.registry, wanted, after, of_entity=bool(by.actor.entity_id))
    where = await _where(by.registry, wanted, of_entity=bool(by.actor.entity_id))
    if where is None:
        return [], []
    rows = await directory.page(record, where, after=after or ("",) * resource.width, limit=limit)  # type: ignore[type-var]
    return [*rows], [key_of_record(row) for row in rows]


async def _members(registry: Registry, wanted: Mapping[str, str], after: tuple[str, ...], limit: int) -> list[User]:
    first, until = _span(wanted.get("search", ""), after, named=True)
    return await registry.directory.members(wanted["entity"], first=first, until=until, limit=limit)


async def _memberships(
    registry: Registry, wanted: Mapping[str, str], after: tuple[str, ...], *, of_entity: bool
) -> tuple[list[msgspec.Struct], list[tuple[str, ...]]]:
    """A person's membership of an entity."""
    user = await find_person(registry, wanted["entity"], wanted["user"], of_entity=of_entity)
    key = (user.user_id, wanted["entity"]) if user is not None and not after else ("", "")
    held = (await registry.directory.read(Membership, [key])).get(key)
    return ([], []) if held is None else ([held], [(held.membership_id,)])


async def _where(registry: Registry, wanted: Mapping[str, str], *, of_entity: bool) -> dict[str, str] | None:
    """The columns that a list is narrowed by.

    None if it names a person who is not there.
    """
    where = {_COLUMNS[name]: value for name, value in wanted.items() if name != "user"}
    if "user" in wanted:
        entity_id = wanted.get("entity") or wanted.get("third_party", "")
        user = await find_person(registry, entity_id, wanted["user"], of_entity=of_entity)
        if user is None:
            return None
        where["user_id"] = user.user_id
    return where


def _span(search: str, after: tuple[str, ...], *, named: bool) -> tuple[str, str]:
    """The bounds of keys that begin with `search`, after a place."""
    if named and search:
        try:
            search = mapped(search)
        except ValueError:
            return LAST, LAST
    return max(search, after[0] + FIRST_CHARACTER if after else ""), search + LAST
