"""People, entities and services by what somebody typed, with hints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from corpid.flows.directory.write import Refused
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.names import user_name as mapped
from corpid.rules.directory.records import Entity, Service, User
from corpid.rules.directory.values import suggestion

if TYPE_CHECKING:
    from corpid.ports import Registry
    from corpid.ports.directory_lists import N
    from corpid.rules.directory.actors import Actor

K = TypeVar("K", Entity, Service)

LAST: Final = "\U0010ffff"
"""after every identifier and user name"""
_SURROGATES: Final = ("\ud800", "\udfff")
_NEAR: Final = 200
_BEGINNING: Final = 2


async def user_named(registry: Registry, user_name: str, *, actor: Actor) -> User:
    """Return the person of this name, however it is written.

    Raises writing.Refused if there is none, access.Forbidden, StoreUnavailable. Source: D51
    """
    try:
        name = mapped(user_name)
    except ValueError as error:
        raise Refused(f"{user_name!r}: {error}") from None
    found = await registry.directory.user_by_name(name)
    if found is None:
        authorise(actor, "read", Object(kind="user"))
        raise Refused(f"there is no user {name!r}{await _hint(registry, User, name)}")
    authorise(actor, "read", Object(kind="user", user_id=found.user_id))
    return found


async def entity_named(registry: Registry, entity_id: str, *, actor: Actor) -> Entity:
    """Return the entity with this identifier.

    Raises writing.Refused if there is none, access.Forbidden, StoreUnavailable. Source: R-14.2
    """
    return await _identified(registry, Entity, entity_id, Object(kind="entity", entity_id=entity_id), actor)


async def service_named(registry: Registry, service_id: str, *, actor: Actor) -> Service:
    """Return the service with this identifier.

    Raises writing.Refused if there is none, access.Forbidden, StoreUnavailable. Source: R-14.1
    """
    return await _identified(registry, Service, service_id, Object(kind="service", service_id=service_id), actor)


def is_storable(text: str) -> bool:
    """Return whether a database can be asked for a text.

    A terminal can send bytes that are no text. Source: RFC 3629 §3
    """
    return "\0" not in text and not any(_SURROGATES[0] <= each <= _SURROGATES[1] for each in text)


async def _identified(registry: Registry, record: type[K], identifier: str, thing: Object, actor: Actor) -> K:
    authorise(actor, "read", thing)
    key = (identifier,)
    found = (await registry.directory.read(record, [key])).get(key) if is_storable(identifier) else None
    if found is None:
        raise Refused(f"there is no {thing.kind} {identifier!r}{await _hint(registry, record, identifier)}")
    return found


def shown_key(record: Entity | Service | User) -> str:
    """Return the identifier of a record, a user's name. Source: D51, R-14."""
    return record.user_name if isinstance(record, User) else record.key[0]


async def _hint(registry: Registry, kind: type[N], word: str) -> str:
    """Return the closest of some known identifiers.

    Of the first ones, and of those that begin alike: a directory has too many to compare with each.
    """
    if not is_storable(word):
        return ""
    start: str = word[:_BEGINNING]
    known = [
        *await registry.directory.named(kind, first="", until=LAST, limit=_NEAR),
        *await registry.directory.named(kind, first=start, until=start + LAST, limit=_NEAR),
    ]
    return suggestion(word, {shown_key(each) for each in known})
