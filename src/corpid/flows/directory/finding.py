"""Search for people, entities and services that an actor may know."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from corpid.flows.directory.write import Refused
from corpid.rules.directory.access import Action, Object, authorise
from corpid.rules.directory.actors import Actor, DeploymentOperator
from corpid.rules.directory.lists import RECORD_LISTS
from corpid.rules.directory.names import is_storable
from corpid.rules.directory.names import user_name as mapped
from corpid.rules.directory.records import Assignment, Entity, Operator, Service, ThirdPartyGrant, User
from corpid.rules.readers import suggestion
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corpid.stores.sql.registry import Registry

K = TypeVar("K", Entity, Service)
N = TypeVar("N", Entity, Service, User)
W = TypeVar("W", Assignment, ThirdPartyGrant)
_NEAR: Final = 200
_BEGINNING: Final = 2
T = TypeVar("T")


class RowFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Members that distinguish rows of a service; None: any."""

    role: str | None = None
    sub_entity: str | None = None
    ref: str | None = None

    def fits(self, row: Assignment | ThirdPartyGrant) -> bool:
        """Return whether a row is one that is meant."""
        asked = ((self.role, row.role), (self.sub_entity, row.sub_entity), (self.ref, row.ref))
        return all(named is None or named == value for named, value in asked)


async def find_user(registry: Registry, user_name: str, *, actor: Actor) -> User:
    """Return the person of this name, however it is written.

    Raises write.Refused if there is none, access.Forbidden, StoreUnavailable. Source: D51
    """
    try:
        name = mapped(user_name)
    except ValueError as error:
        raise Refused(f"{user_name!r}: {error}") from None
    found = await registry.directory.user_by_name(name)
    if found is None:
        authorise_list(actor, Object(kind="user"))
        raise Refused(f"there is no user {name!r}{await _suggest(registry, User, name)}")
    thing = Object(kind="user", user_id=found.user_id)
    if isinstance(actor, DeploymentOperator):
        await authorise_on_person(registry, actor, "read", thing)
    else:
        authorise(actor, "read", thing)
    return found


def refuse_invited(record: Any) -> None:  # noqa: ANN401 - of any kind
    """Refuse to change a person who has not accepted an invitation.

    Raises write.Refused. Source: D60
    """
    if getattr(record, "placeholder", False):
        raise Refused(
            phrase("{name} has not accepted an invitation yet: there is no account to change", name=record.user_name)
        )


async def find_entity(registry: Registry, entity_id: str, *, actor: Actor) -> Entity:
    """Return the entity with this identifier.

    Raises write.Refused if there is none, access.Forbidden, StoreUnavailable. Source: R-14.2
    """
    return await _find_identified(registry, Entity, entity_id, Object(kind="entity", entity_id=entity_id), actor)


async def find_service(registry: Registry, service_id: str, *, actor: Actor) -> Service:
    """Return the service with this identifier.

    Raises write.Refused if there is none, access.Forbidden, StoreUnavailable. Source: R-14.1
    """
    return await _find_identified(registry, Service, service_id, Object(kind="service", service_id=service_id), actor)


def read_shown_key(record: Entity | Service | User) -> str:
    """Return the identifier of a record, a user's name. Source: D51, R-14."""
    return record.user_name if isinstance(record, User) else record.key[0]


def pick_one(rows: Sequence[W], *, none: str, several: str, note: Callable[[W], str], among: Sequence[W] = ()) -> W:
    """Return the one row that is meant.

    `none` and `several` say what is wrong otherwise, `note` adds details of a row, `among` are those that were looked
    through. Raises Refused with the rows there are, each by its options. Source: R-14, D56
    """
    if len(rows) == 1:
        return rows[0]
    listed = rows or among
    shown = [f"  {_format_options(row)}{f'  ({note(row)})' if note(row) else ''}" for row in listed]
    raise Refused(
        f"{several}; name one of them by its options" if rows else f"{none}; there is" if listed else none, *shown
    )


async def authorise_on_person(registry: Registry, actor: Actor, action: Action, thing: Object) -> None:
    """Authorise with the fact whether the person operates the deployment.

    Raises access.Forbidden, StoreUnavailable. Source: D53
    """
    operates = await registry.directory.read(Operator, [(thing.user_id,)])
    authorise(actor, action, replace(thing, operates=bool(operates)))


def authorise_list(actor: Actor, thing: Object) -> None:
    """Authorise a list of people.

    The store leaves out those whom the actor may not see. Raises access.Forbidden. Source: D53
    """
    authorise(actor, "read", replace(thing, operates=False) if isinstance(actor, DeploymentOperator) else thing)


async def _find_identified(registry: Registry, record: type[K], identifier: str, thing: Object, actor: Actor) -> K:
    authorise(actor, "read", thing)
    found = await registry.directory.find(record, identifier) if is_storable(identifier) else None
    if found is None:
        raise Refused(f"there is no {thing.kind} {identifier!r}{await _suggest(registry, record, identifier)}")
    return found


async def _suggest(registry: Registry, kind: type[N], word: str) -> str:
    """Return the closest of some known identifiers.

    Of the first ones, and of those that begin alike: a directory has too many to compare with each.
    """
    if not is_storable(word):
        return ""
    start: str = word[:_BEGINNING]
    known = [
        *await registry.lists.find(RECORD_LISTS[kind], limit=_NEAR),
        *await registry.lists.find(RECORD_LISTS[kind], beginning=start, limit=_NEAR),
    ]
    return suggestion(word, {read_shown_key(each) for each in known})


def _format_options(row: Assignment | ThirdPartyGrant) -> str:
    options = (("role", row.role), ("sub-entity", row.sub_entity), ("ref", row.ref))
    return " ".join(f"--{name} {shlex.quote(value)}" for name, value in options)
