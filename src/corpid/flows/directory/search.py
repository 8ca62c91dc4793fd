"""Search in the portal, for what an entity has (D83)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from corpid.flows.directory import approvals, grants
from corpid.flows.directory.approvals import Request
from corpid.flows.directory.grants import Authorisation
from corpid.flows.directory.lists import ListPage
from corpid.flows.directory.members import MemberFilter, MemberSummary, list_members
from corpid.flows.directory.role_assignment import list_services
from corpid.rules.directory.names import is_storable
from corpid.rules.directory.records import Entity, Service
from corpid.rules.directory.words import has_words, words_of_search

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpid.rules.directory.actors import EntityAdministrator
    from corpid.stores.sql.registry import Registry

    T = TypeVar("T")

_LOOKED_THROUGH: Final = 200
"""authorisations, and requests, of each side"""


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The records that have all words of a search."""

    people: ListPage[MemberSummary]
    services: tuple[Service, ...] = ()
    authorisations: tuple[Authorisation, ...] = ()
    requests: tuple[Request, ...] = ()


async def search_entity(
    registry: Registry, actor: EntityAdministrator, entity: Entity, text: str, *, now: float, limit: int
) -> SearchResult:
    """Search the entity of an administrator by words in any order.

    `limit` is that of each kind. Raises access.Forbidden, StoreUnavailable. Source: D53, D83
    """
    asked = words_of_search(text) if is_storable(text) else ()
    if not asked:
        return SearchResult(people=ListPage(found=()))

    def narrow(found: Iterable[tuple[T, str]]) -> tuple[T, ...]:
        return tuple(each for each, words in found if has_words(words, asked))[:limit]

    services = await list_services(registry, actor, entity)
    authorisations: list[Authorisation] = []
    if actor.level != "sub_administrator":
        for given in (True, False):
            page = await grants.list_authorisations(registry, actor, given=given, limit=_LOOKED_THROUGH)
            authorisations += page.found
    requests: list[Request] = []
    for own in (False, True):
        waiting = await approvals.list_waiting(registry, actor, own=own, now=now, after="", limit=_LOOKED_THROUGH)
        requests += waiting.found
    return SearchResult(
        people=await list_members(registry, MemberFilter(search=text), actor=actor, after="", limit=limit),
        services=narrow((each, " ".join((each.name, each.description, *each.roles))) for each in services),
        authorisations=narrow((each, _words_of_authorisation(each, actor)) for each in authorisations),
        requests=narrow((each, _words_of_request(each)) for each in requests),
    )


def _words_of_authorisation(found: Authorisation, actor: EntityAdministrator) -> str:
    client = found.grant.client_entity_id == actor.entity_id
    other = found.third_party if client else found.client_entity
    return f"{other.name} {other.registration_number} {found.service.name} {found.grant.role}"


def _words_of_request(found: Request) -> str:
    names = found.names
    about = (*names.people.values(), *names.entities.values(), *names.services.values())
    return " ".join((*about, str(found.requester), found.record.reason))
