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
from corpid.rules.directory.lists import ListTotal
from corpid.rules.directory.names import is_storable
from corpid.rules.directory.plan import keys_named
from corpid.rules.directory.records import Entity, Service
from corpid.rules.directory.words import has_words, words_of_search

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpid.rules.directory.access import EntityAdministrator
    from corpid.stores.sql.registry import Registry

    T = TypeVar("T")

_LOOKED_THROUGH: Final = 200
"""authorisations, and requests, of each side"""


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The records that have all words of a search."""

    words: tuple[str, ...] = ()
    """of the search"""
    people: ListPage[MemberSummary] = ListPage(found=())
    services: ListPage[Service] = ListPage(found=())
    authorisations: ListPage[Authorisation] = ListPage(found=())
    requests: ListPage[Request] = ListPage(found=())


async def search_entity(
    registry: Registry, actor: EntityAdministrator, entity: Entity, text: str, *, now: float, limit: int
) -> SearchResult:
    """Search the entity of an administrator by words in any order.

    `limit` is that of each kind. Raises access.Forbidden, StoreUnavailable. Source: D53, D83
    """
    asked = words_of_search(text) if is_storable(text) else ()
    if not asked:
        return SearchResult()

    def narrow(found: Iterable[tuple[T, str]], *, is_cut: bool = False) -> ListPage[T]:
        fitting = tuple(each for each, words in found if has_words(words, asked))
        total = None if is_cut else ListTotal(count=len(fitting), exact=True)
        return ListPage(found=fitting[:limit], total=total)

    services = await list_services(registry, actor, entity)
    authorisations = [
        await grants.list_authorisations(registry, actor, given=given, limit=_LOOKED_THROUGH)
        for given in ((True, False) if actor.level != "sub_administrator" else ())
    ]
    waiting = [
        await approvals.list_waiting(registry, actor, own=own, now=now, after="", limit=_LOOKED_THROUGH)
        for own in (False, True)
    ]
    return SearchResult(
        words=asked,
        people=await list_members(registry, MemberFilter(search=text), actor=actor, after="", limit=limit),
        services=narrow((each, " ".join((each.name, each.description, *each.roles))) for each in services),
        authorisations=narrow(
            ((each, _words_of_authorisation(each, actor)) for page in authorisations for each in page.found),
            is_cut=any(page.after for page in authorisations),
        ),
        requests=narrow(
            (
                (each, " ".join((*names_in_request(each), each.requester, each.record.reason)))
                for page in waiting
                for each in page.found
            ),
            is_cut=any(page.after for page in waiting),
        ),
    )


def _words_of_authorisation(found: Authorisation, actor: EntityAdministrator) -> str:
    client = found.grant.client_entity_id == actor.entity_id
    other = found.third_party if client else found.client_entity
    return f"{other.name} {other.registration_number} {found.service.name} {found.grant.role}"


def names_in_request(found: Request) -> tuple[str, ...]:
    """The people, other entities and services of a request's changes. Source: D55"""
    people = (found.names.people.get(each.record.key[0], "") for each in found.changes)
    # The names are those of all requests that were read together.
    own = {
        (kind, *key)
        for change in found.changes
        for record in filter(None, (change.before, change.after))
        for kind, key in keys_named(change.kind, record.key, msgspec.structs.asdict(record))
    } - {("entity", found.record.entity_id)}
    entities = (name for key, name in found.names.entities.items() if ("entity", key) in own)
    services = (name for key, name in found.names.services.items() if ("service", key) in own)
    return (*dict.fromkeys(people), *entities, *services)
