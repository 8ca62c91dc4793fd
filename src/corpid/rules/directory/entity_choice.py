"""Selectable entities of a person at a relying party (R-19, R-20)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, product
from types import MappingProxyType
from typing import Final, TypeAlias, get_args

import msgspec

from corpid.rules.directory.names import fold_text
from corpid.rules.directory.records import ENTITY_STATUSES, Entity, EntityStatus, EntityType, Membership, Service
from corpid.texts import Phrase, phrase

Form: TypeAlias = tuple[EntityType, EntityStatus]
"""the facts by which a client's services accept an entity"""

FORMS: Final[tuple[Form, ...]] = tuple(product(get_args(EntityType), get_args(EntityStatus)))
_EVERY_FORM: Final = frozenset(FORMS)
NUMBERS: Final[Mapping[EntityType, Phrase]] = MappingProxyType(
    {
        "UEN": phrase("Registration number"),
        "NON-UEN": phrase("Foreign registration number"),
        "GSTN": phrase("Tax registration number"),
    }
)
"""how the registration number of an entity of a type is called on a page"""
_IN_NO_NAME: Final = "\ufffd"


class EntityChoice(msgspec.Struct, frozen=True, kw_only=True):
    """An entity of a person.

    `reason` says in words why it cannot be chosen, and is None if it can.
    """

    entity: Entity
    reason: Phrase | None = None

    @property
    def usable(self) -> bool:
        """True if the person can act for this entity here."""
        return self.reason is None


def usable(entity: Entity, membership: Membership, services: Sequence[Service]) -> EntityChoice:
    """Judge an entity of a person for a client.

    `services` are the client's; a client without any accepts every entity. One service that accepts
    the entity's type and status is enough; a service that is switched off accepts none. Source: Spec 3, R-19, R-20
    """
    return EntityChoice(entity=entity, reason=_why_not(entity, membership, services))


def _why_not(entity: Entity, membership: Membership, services: Sequence[Service]) -> Phrase | None:
    if not entity.enabled:
        return phrase("This organisation is disabled.")
    if not membership.enabled:
        return phrase("You no longer act for this organisation.")
    if _accepts(services, entity.type, entity.status):
        return None
    open_services = [service for service in services if service.enabled]
    if not open_services:
        return phrase("This service is disabled.")
    if not any(entity.type in service.entity_types for service in open_services):
        return phrase("This service does not accept organisations of this type.")
    return phrase(
        "This service does not accept organisations with the status {status}.", status=ENTITY_STATUSES[entity.status]
    )


def accepted_entities(services: Sequence[Service]) -> frozenset[Form]:
    """The types and statuses of entities that services accept.

    `usable` accepts them if entity and membership are enabled. With them a registry finds usable entities without
    loading all that a person has. R-19, R-20.
    """
    if not services:
        return _EVERY_FORM
    named = (product(service.entity_types, service.entity_statuses) for service in services if service.enabled)
    return _EVERY_FORM.intersection(chain.from_iterable(named))


def _accepts(services: Sequence[Service], form: EntityType, status: EntityStatus) -> bool:
    return not services or any(
        service.enabled and form in service.entity_types and status in service.entity_statuses for service in services
    )


def search_text(entity: Entity) -> str:
    """The search and sort text of an entity: name, numbers, folded.

    One a line. Source: Spec 3.
    """
    lines = (entity.name, entity.registration_number, entity.entity_id)
    return "\n".join(" ".join(search_words(line)) for line in lines)


def search_words(query: str) -> tuple[str, ...]:
    """The words of a query, folded as in `search_text`.

    An entity matches if it contains each of them. Folded alike are capital and small letters of every script,
    full-width and composed forms. An unprintable character, which no name contains (D51), becomes a replacement
    character. Unicode 3.13 (toNFKC_Casefold), Spec 3.
    """
    return tuple("".join(c if c.isprintable() else _IN_NO_NAME for c in word) for word in fold_text(query).split())
