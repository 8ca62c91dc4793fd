"""One person: factors, memberships, levels and roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.flows.directory import people
from corpid.flows.directory.lists import Belonging, Page, Wanted, memberships, roles, third_party_roles
from corpid.rules.authentication.records import HeldFactors
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.effect import Role
from corpid.rules.directory.records import Operator, User

if TYPE_CHECKING:
    from corpid.ports import Link, Registry
    from corpid.rules.directory.actors import Actor


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """A person with everything that they hold, a page of each."""

    user: User
    factors: HeldFactors
    invited_until: int
    """when the invitation ends that the person has, in epoch seconds; 0: they have none"""
    operator: str
    """their level as an operator of the deployment, if any"""
    memberships: Page[Belonging]
    roles: Page[Role]
    third_party_roles: Page[Role]


async def person(registry: Registry, actor: Actor, user_name: str, *, limit: int, now: float) -> Person:
    """Return a person with everything that they hold.

    `now` is in epoch seconds. At most `limit` memberships, and as many roles of each sort. Raises writing.Refused if there is no such person, access.Forbidden, StoreUnavailable. Source: D50, D53
    """
    user, held = await people.factors(registry, user_name, actor=actor)
    authorise(actor, "read", Object(kind="operator", user_id=user.user_id))
    links = await registry.factors.links_of(user.user_id)
    operators = await registry.directory.read(Operator, [user.key])
    wanted = Wanted(user=user.user_name)
    return Person(
        user=user,
        factors=held,
        invited_until=max((link.expires_at for link in links if _invites(link, now)), default=0),
        operator=operators[user.key].level if user.key in operators else "",
        memberships=await memberships(registry, actor, user, after="", limit=limit),
        roles=await roles(registry, actor, wanted, after="", limit=limit),
        third_party_roles=await third_party_roles(registry, actor, wanted, after="", limit=limit),
    )


def _invites(link: Link, now: float) -> bool:
    return link.purpose == "invitation" and link.expires_at > now
