"""Entities that a person can choose for a client (Spec 3, D30).

A person may have thousands. Each function costs the same for any number, except the page, which loads the entities that
it shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.rules.authentication import sign_in
from corpid.rules.directory.entity_choice import EntityChoice, accepted_entities, search_words, usable

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.records import ActingPerson, Service
    from corpid.rules.oauth.authorization_request import AuthorizationRequest
    from corpid.rules.oauth.records import Client

SHOWN: Final = 50
"""entities of one page"""
QUERY_CHARACTERS: Final = 200
"""characters of a search text; the rest is ignored"""
_QUERY_WORDS: Final = 10


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """The first entities that match a query, and the number of matches.

    Usable entities come before the others.
    """

    choices: tuple[EntityChoice, ...]
    total: int
    preselected: str
    """an entity_id: the only usable one, else the one given as first, which may be none of these"""


async def find_only_entity(context: RequestContext, user_id: str, client: Client, request: AuthorizationRequest) -> str:
    """Return the identifier of the only usable entity.

    No choice is needed then. The result is empty for none or several, and if the client requests a choice in any case.
    Source: D30, D40
    """
    if sign_in.requests_entity_choice(request):
        return ""
    found = await _first_usable(context, user_id, client)
    return found[0].entity.entity_id if len(found) == 1 else ""


async def any_usable(context: RequestContext, user_id: str, client: Client) -> bool:
    """Return whether the person has any usable entity at this client (Spec 3)."""
    return bool(await _first_usable(context, user_id, client))


async def usable_here(context: RequestContext, user_id: str, entity_id: str, client: Client) -> ActingPerson | None:
    """Return a person and their entity if usable at this client.

    The result is None otherwise. Whether the person is enabled is checked at the end of the sign-in. Source: Spec 3,
    D50
    """
    found = await context.provider.registry_cache.membership(user_id, entity_id, context.now)
    if found is None:
        return None
    services = await _services(context, client)
    return found if usable(found.entity, found.membership, services).usable else None


async def offer(context: RequestContext, user_id: str, client: Client, *, query: str, preselected: str) -> Offer:
    """Return the first entities that match a query by name or number.

    Each unusable entity comes with its reason. Usable ones come first, starting with the preselected one; then they are
    sorted by name. Source: Spec 3, R-19
    """
    services = await _services(context, client)
    found, total = await context.provider.registry.directory.choices(
        user_id,
        accepted_entities(services),
        # Each word is searched for in thousands of names.
        words=search_words(query[:QUERY_CHARACTERS])[:_QUERY_WORDS],
        first=preselected,
        limit=SHOWN,
    )
    offered = tuple(usable(entity, membership, services) for entity, membership in found)
    answers = [each.entity.entity_id for each in offered if each.usable]
    return Offer(choices=offered, total=total, preselected=answers[0] if len(answers) == 1 else preselected)


async def _first_usable(context: RequestContext, user_id: str, client: Client) -> list[ActingPerson]:
    return await context.provider.registry_cache.usable(
        user_id, accepted_entities(await _services(context, client)), context.now
    )


async def _services(context: RequestContext, client: Client) -> list[Service]:
    return await context.provider.registry_cache.services(client.services, context.now) if client.services else []
