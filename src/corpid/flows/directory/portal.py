"""The portal: the entity that a person administers, and its home page (D53, D54)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.account.own_sessions import SelfServiceRequest
from corpid.flows.authentication import sessions
from corpid.flows.directory.actors import load_administrator
from corpid.flows.directory.approvals import can_decide, waits_for_others, waits_for_requester
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.directory.access import EntityAdministrator, Forbidden, Object, authorise
from corpid.rules.directory.memberships import EntityTotals
from corpid.rules.directory.records import ChangeRequest, Entity, Membership
from corpid.texts import InvalidInput, phrase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.flows.request_context import RequestContext
    from corpid.stores.sql.registry import Registry

MOST_COUNTED_PEOPLE: Final = 20_000
"""up to which they are counted, and everything else"""
MOST_REQUESTS: Final = 100
"""that wait, which are looked through"""


@dataclass(frozen=True, kw_only=True)
class PortalRequest(SelfServiceRequest):
    """A person in the portal, and the entity that they act for."""

    entity: Entity | None = None
    actor: EntityAdministrator | None = None
    """None with the entity, which is then to be chosen"""
    several: bool = False
    """whether they administer another entity, too"""
    requests: int = 0
    """that they can decide on"""
    own_requests: int = 0
    commented_requests: int = 0
    """own requests whose last comment is somebody else's"""
    """that they have made"""
    more_requests: bool = False
    """whether more wait than were looked through"""

    @property
    def form(self) -> str:
        """The binding of the portal's forms: also to the entity (D35, D54)."""
        return f"{super().form} {self.session.entity_id}"


async def admit_to_entity(
    context: RequestContext, visit: SelfServiceRequest, *, wanted: str = "", choosing: bool = False
) -> PortalRequest:
    """The person with the entity of their session, or a chosen one.

    Without a choice yet it is `wanted`, if they administer that, or the only one; else it is still to be chosen. If
    they no longer administer the one of their session, raises access.Forbidden; not if they are `choosing` another one.
    Source: D50, D54
    """
    found = PortalRequest(user=visit.user, browser=visit.browser, session=visit.session)
    if not visit.session.entity_id:
        mine = await list_administered(context, visit.user.user_id)
        only = mine[0].entity_id if len(mine) == 1 else ""
        chosen = wanted if any(each.entity_id == wanted for each in mine) else only
        if not chosen:
            return found
        return await _store_choice(context, found, chosen)
    try:
        return await _load_actor(context, found)
    except Forbidden:
        if choosing:
            return found
        raise


async def choose_entity(context: RequestContext, visit: PortalRequest, entity_id: str) -> PortalRequest:
    """Act for an entity until another one is chosen.

    The session stays as old as it is, so that a change needs a sign-in as before. Raises InvalidInput for an entity
    that they do not administer, StaleStep if the session has ended. Source: D54
    """
    if entity_id not in {each.entity_id for each in await list_administered(context, visit.user.user_id)}:
        raise InvalidInput(phrase("Choose one of your organisations."), field="entity")
    return await _store_choice(context, visit, entity_id)


async def list_administered(context: RequestContext, user_id: str) -> Sequence[Entity]:
    """The entities that a person can administer now, by name.

    Raises StoreUnavailable. Source: D50, D53
    """
    directory = context.provider.registry.directory
    ids = [each.entity_id for each in await directory.administered(user_id)]
    entities = await directory.read(Entity, [(entity_id,) for entity_id in ids])
    memberships = await directory.read(Membership, [(user_id, entity_id) for entity_id in ids])
    live = {each.entity_id for each in memberships.values() if each.enabled and not each.invited}
    found = [each for each in entities.values() if each.enabled and each.entity_id in live]
    return sorted(found, key=lambda each: (each.name.casefold(), each.entity_id))


async def load_home_numbers(registry: Registry, actor: EntityAdministrator, *, first: str, last: str) -> EntityTotals:
    """The numbers of the actor's entity; roles that end in these days.

    Raises access.Forbidden, StoreUnavailable. Source: D53, D61
    """
    authorise(actor, "read", Object(kind="membership", entity_id=actor.entity_id))
    totals = await registry.directory.totals(actor.entity_id, first=first, last=last, most=MOST_COUNTED_PEOPLE)
    if actor.level == "sub_administrator":  # reads the roles at its services only, and no grants
        totals = EntityTotals(people=totals.people, ending=0, offers=0)
    return totals


async def _store_choice(context: RequestContext, visit: PortalRequest, entity_id: str) -> PortalRequest:
    """Store the choice of an entity that they administer."""
    if await sessions.use(context, visit.session, entity_id=entity_id) is None:
        raise StaleStep
    session = await context.provider.registry.sessions.get(visit.session.session_id, now=context.now)
    if session is None:
        raise StaleStep
    return await _load_actor(context, replace(visit, session=session))


async def _load_actor(context: RequestContext, visit: PortalRequest) -> PortalRequest:
    registry, session = context.provider.registry, visit.session
    actor = await load_administrator(
        registry, visit.user.user_id, session.entity_id, auth_time=session.auth_time, now=context.now
    )
    actor = msgspec.structs.replace(actor, request_id=context.request_id, address=context.address)
    key = (session.entity_id,)
    entity = (await registry.directory.read(Entity, [key]))[key]
    several = len(await list_administered(context, visit.user.user_id)) > 1
    where = {"entity_id": session.entity_id, "state": "pending"}
    waiting = await registry.directory.page(ChangeRequest, where, limit=MOST_REQUESTS + 1)
    return replace(
        visit,
        entity=entity,
        actor=actor,
        several=several,
        requests=sum(can_decide(each, actor) for each in waiting),
        own_requests=sum(waits_for_others(each, actor) for each in waiting),
        commented_requests=sum(waits_for_requester(each, actor) for each in waiting),
        more_requests=len(waiting) > MOST_REQUESTS,
    )
