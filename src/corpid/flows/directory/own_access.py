"""A person's own entities and roles, with their givers (D53, D61, D65)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from corpid.flows.directory.lists import with_records
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.actors import Person
from corpid.rules.directory.effect import Role
from corpid.rules.directory.person_names import shown_name
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Entity,
    Membership,
    ThirdPartyAssignment,
    User,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpid.stores.sql.registry import Registry

MOST: Final = 200
"""memberships of a person, and roles of each sort, that are shown"""
GivenBy: TypeAlias = Literal["operator", "program", "person", "you", ""]


class Giver(msgspec.Struct, frozen=True, kw_only=True):
    """The giver of a role: its last writer."""

    kind: GivenBy
    """empty: not known"""
    name: str = ""
    """of a person who belongs to the same entity"""


class OwnRole(msgspec.Struct, frozen=True, kw_only=True):
    role: Role
    giver: Giver


class OwnEntity(msgspec.Struct, frozen=True, kw_only=True):
    """An entity that the reader belongs to."""

    entity: Entity
    membership: Membership
    level: str
    roles: tuple[OwnRole, ...]


async def own_access(registry: Registry, user_id: str) -> list[OwnEntity]:
    """The entities and roles of a person, by name of the entity.

    Invitations are left out, until they are accepted. Raises StoreUnavailable. Source: D53, D60, D65
    """
    for kind in ("membership", "administrator", "assignment", "third-party row"):
        authorise(Person(user_id), "read", Object(kind=kind, user_id=user_id))
    directory = registry.directory
    where = {"user_id": user_id}
    held = await directory.page(Membership, where, after=("", ""), limit=MOST)
    held = [each for each in held if not each.invited]
    known = await directory.read(Entity, [each.key[1:] for each in held])
    levels = await directory.read(Administrator, [each.key for each in held])
    own = await directory.page(Assignment, where, after=("",) * 6, limit=MOST)
    others = await directory.page(ThirdPartyAssignment, where, after=("",) * 7, limit=MOST)
    roles = await with_records(directory, [*own, *others])
    givers = await _givers(registry, user_id, roles)
    found = [
        OwnEntity(
            entity=known[each.key[1:]],
            membership=each,
            level=levels[each.key].level if each.key in levels else "",
            roles=tuple(
                OwnRole(role=role, giver=giver)
                for role, giver in zip(roles, givers, strict=True)
                if role.row.entity_id == each.entity_id
            ),
        )
        for each in held
        if each.key[1:] in known
    ]
    return sorted(found, key=lambda each: (each.entity.name.casefold(), each.entity.entity_id))


async def _givers(registry: Registry, user_id: str, roles: Iterable[Role]) -> list[Giver]:
    """The giver of each role, by its source (D65)."""
    directory = registry.directory
    rows = [role.row for role in roles]
    sources: dict[tuple[str, ...], str] = {}
    for kind in (Assignment, ThirdPartyAssignment):
        keys = [row.key for row in rows if isinstance(row, kind)]
        sources |= {key: each.sources.record for key, each in (await directory.sourced(kind, keys)).items()}
    people = {
        (row.key, sources[row.key].removeprefix("user:"), row.entity_id)
        for row in rows
        if _is_person(sources.get(row.key, ""))
    }
    names = await _names(registry, {(person, entity_id) for _, person, entity_id in people})
    return [_giver(sources.get(row.key, ""), user_id, names, row.entity_id) for row in rows]


def _is_person(source: str) -> bool:
    return source.startswith("user:")


async def _names(registry: Registry, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Names of people who belong to an entity (D61)."""
    belonging = await registry.directory.read(Membership, wanted)
    users = await registry.directory.read(User, {(person,) for person, _ in wanted})
    return {
        (person, entity_id): shown_name(held, users[person,])
        for (person, entity_id), held in belonging.items()
        if not held.invited and (person,) in users
    }


def _giver(source: str, user_id: str, names: dict[tuple[str, str], str], entity_id: str) -> Giver:
    kind, _, identifier = source.partition(":")
    if kind == "user":
        if identifier == user_id:
            return Giver(kind="you")
        return Giver(kind="person", name=names.get((identifier, entity_id), ""))
    if kind in {"operator", "command", "file"}:
        return Giver(kind="operator")
    return Giver(kind="program" if kind in {"client", "token"} else "")
