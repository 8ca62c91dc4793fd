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
    from corpid.ports import Registry
    from corpid.rules.directory.actors import Actor


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """A person with everything that they hold, a page of each."""

    user: User
    factors: HeldFactors
    operator: str
    """their level as an operator of the deployment, if any"""
    memberships: Page[Belonging]
    roles: Page[Role]
    third_party_roles: Page[Role]


async def person(registry: Registry, actor: Actor, user_name: str, *, limit: int) -> Person:
    """Return a person with everything that they hold.

    At most `limit` memberships, and as many roles of each sort. Raises writing.Refused if there is no such person, access.Forbidden, StoreUnavailable. Source: D50, D53
    """
    user, held = await people.factors(registry, user_name, actor=actor)
    authorise(actor, "read", Object(kind="operator", user_id=user.user_id))
    operators = await registry.directory.read(Operator, [user.key])
    wanted = Wanted(user=user.user_name)
    return Person(
        user=user,
        factors=held,
        operator=operators[user.key].level if user.key in operators else "",
        memberships=await memberships(registry, actor, user, limit=limit),
        roles=await roles(registry, actor, wanted, after="", limit=limit),
        third_party_roles=await third_party_roles(registry, actor, wanted, after="", limit=limit),
    )
