"""Which entities a person can choose at a relying party, and why not the others (R-19, R-20)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.directory.records import Entity, Membership, Service

if TYPE_CHECKING:
    from collections.abc import Sequence


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """An entity of a person; `reason` says in words why it cannot be chosen, and is empty if it can."""

    entity: Entity
    reason: str = ""

    @property
    def usable(self) -> bool:
        """Whether the person can act for this entity here."""
        return not self.reason


def usable(entity: Entity, membership: Membership, services: Sequence[Service]) -> Choice:
    """Judge an entity of a person for a client.

    `services` are the client's; a client without any accepts every entity. One service that accepts
    the entity's type and status is enough; a service that is switched off accepts none. R-19, R-20, D17.
    """
    return Choice(entity=entity, reason=_why_not(entity, membership, services))


def _why_not(entity: Entity, membership: Membership, services: Sequence[Service]) -> str:
    if not entity.enabled:
        return "This organisation is switched off."
    if not membership.enabled:
        return "You no longer act for this organisation."
    if not services:
        return ""
    open_services = [service for service in services if service.enabled]
    if not open_services:
        return "This service is switched off."
    of_type = [service for service in open_services if entity.type in service.entity_types]
    if not of_type:
        return f"This service does not accept organisations of the type {entity.type}."
    if any(entity.status in service.entity_statuses for service in of_type):
        return ""
    return f"This service does not accept organisations whose status is {entity.status or 'unknown'}."
