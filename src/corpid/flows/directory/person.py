"""One person: factors, memberships, levels and roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.flows.directory import people
from corpid.flows.directory.consents import consents_of
from corpid.flows.directory.deletion_requests import requested_at
from corpid.flows.directory.lists import Belonging, ListFilter, ListPage, memberships, roles, third_party_roles
from corpid.rules.authentication.records import EmailChange, PersonFactors
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.effect import Role
from corpid.rules.directory.records import Administrator, Assignment, Membership, Operator, ThirdPartyAssignment, User
from corpid.rules.directory.sources import people as people_among
from corpid.rules.oauth.consent import Consent

if TYPE_CHECKING:
    from corpid.rules.authentication.records import FactorLink
    from corpid.rules.directory.actors import Actor
    from corpid.rules.directory.records import Record
    from corpid.stores.sql.registry import Registry


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """A person with everything that they hold, a page of each."""

    user: User
    factors: PersonFactors
    invited_until: int
    """when the invitation ends that the person has, in epoch seconds; 0: they have none"""
    deletion_requested_at: int
    """when they asked to be deleted, in epoch seconds; 0: they did not"""
    operator: str
    """their level as an operator of the deployment, if any"""
    consents: tuple[Consent, ...]
    """that are remembered, by entity and client"""
    memberships: ListPage[Belonging]
    roles: ListPage[Role]
    third_party_roles: ListPage[Role]
    email_change: EmailChange | None
    """a new address that the person has proven and that is not yet in effect (D61)"""
    written_by: dict[tuple[type, tuple[str, ...]], str]
    """type and key of a record → the actor that wrote it last; empty if it is not known (D65)"""
    user_names: dict[str, str]
    """user identifier → user name of the people among those actors"""


async def person(registry: Registry, actor: Actor, user_name: str, *, limit: int, now: float) -> Person:
    """Return a person with everything that they hold.

    `now` is in epoch seconds. At most `limit` memberships, and as many roles of each sort, and for each a few look-ups
    by key. Raises write.Refused if there is no such person, access.Forbidden, StoreUnavailable. Source: D50, D53, D65
    """
    user, held = await people.factors(registry, user_name, actor=actor)
    authorise(actor, "read", Object(kind="operator", user_id=user.user_id))
    links = await registry.factors.links_of(user.user_id)
    operators = await registry.directory.read(Operator, [user.key])
    wanted = ListFilter(user=user.user_name)
    belongs = await memberships(registry, actor, user, after="", limit=limit)
    own = await roles(registry, actor, wanted, after="", limit=limit)
    for_others = await third_party_roles(registry, actor, wanted, after="", limit=limit)
    keys: dict[type[Record], list[tuple[str, ...]]] = {
        User: [user.key],
        Operator: [*operators],
        Membership: [each.membership.key for each in belongs.found],
        Administrator: [each.membership.key for each in belongs.found if each.level],
        Assignment: [role.row.key for role in own.found],
        ThirdPartyAssignment: [role.row.key for role in for_others.found],
    }
    written_by = {
        (kind, key): found.sources.record
        for kind, wanted_keys in keys.items()
        for key, found in (await registry.directory.sourced(kind, wanted_keys)).items()
    }
    names = await registry.directory.read(User, [(each,) for each in sorted(people_among(written_by.values()))])
    return Person(
        user=user,
        factors=held,
        invited_until=max((link.expires_at for link in links if _invites(link, now)), default=0),
        deletion_requested_at=await requested_at(registry, actor, user.user_id),
        operator=operators[user.key].level if user.key in operators else "",
        consents=tuple((await consents_of(registry, actor, user.user_id, now=now))[:limit]),
        memberships=belongs,
        email_change=await registry.email_changes.find(user.user_id),
        roles=own,
        third_party_roles=for_others,
        written_by=written_by,
        user_names={key[0]: each.user_name for key, each in names.items()},
    )


def _invites(link: FactorLink, now: float) -> bool:
    return link.purpose == "invitation" and link.expires_at > now
