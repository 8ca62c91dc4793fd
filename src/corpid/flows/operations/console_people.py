"""A person as the console shows them: sign-in, organisations and sessions (D53)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import msgspec

from corpid.flows.directory import people, sessions
from corpid.flows.directory.lists import Belonging, ListFilter, ListPage, memberships, roles
from corpid.flows.directory.people_facts import authorise_on_person
from corpid.flows.operations.console import is_allowed
from corpid.rules.authentication.records import PersonFactors, Session
from corpid.rules.authentication.throttling import CodeGuesses
from corpid.rules.directory.access import Object
from corpid.rules.directory.effect import Role
from corpid.rules.directory.records import Operator, OperatorLevel, User

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.directory.access import Action, ObjectKind
    from corpid.rules.directory.actors import DeploymentOperator
    from corpid.stores.sql.registry import Registry

PersonAction: TypeAlias = Literal["unlock", "send_link", "send_invitation", "renew", "end_sessions", "switch"]

RIGHTS: Final[Mapping[PersonAction, tuple[Action, ObjectKind]]] = {
    "unlock": ("delete", "lock"),
    "send_link": ("write", "link"),
    "send_invitation": ("write", "invitation"),
    "renew": ("write", "credentials"),
    "end_sessions": ("delete", "session"),
    "switch": ("write", "user"),
}
"""what can be done to a person, as it is authorised; `renew` removes every factor"""


class PersonDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A person, what they hold, and what the actor may do."""

    user: User
    factors: PersonFactors
    operator: OperatorLevel | Literal[""]
    """their level as an operator of the deployment, if any"""
    invited_until: int
    """when a link to set up their sign-in ends, in epoch seconds; 0: they have none"""
    memberships: ListPage[Belonging]
    roles: ListPage[Role]
    sessions: tuple[Session, ...]
    locks: tuple[CodeGuesses, ...]
    actions: frozenset[PersonAction]
    """with a recent sign-in"""


async def user_of(registry: Registry, user_id: str, *, actor: DeploymentOperator) -> User | None:
    """A person by identifier, None if there is none.

    Raises access.Forbidden, StoreUnavailable. Source: D53
    """
    found = await registry.directory.user(user_id)
    if found is not None:
        await authorise_on_person(registry, actor, "read", Object(kind="user", user_id=user_id))
    return found


async def shown_person(
    registry: Registry, user: User, *, actor: DeploymentOperator, limit: int, now: float
) -> PersonDetails:
    """A person with what they hold, at most `limit` of each sort.

    `now` is in epoch seconds. Raises access.Forbidden, StoreUnavailable. Source: D53
    """
    name = user.user_name
    _, held = await people.factors(registry, name, actor=actor)
    operators = await registry.directory.read(Operator, [user.key])
    links = await registry.factors.links_of(user.user_id)
    _, live = await sessions.sessions_of(registry, name, actor=actor, now=now)
    _, paused = await sessions.locks_of(registry, name, actor=actor, now=now)
    return PersonDetails(
        user=user,
        factors=held,
        operator=operators[user.key].level if user.key in operators else "",
        invited_until=max(
            (each.expires_at for each in links if each.purpose == "invitation" and each.expires_at > now), default=0
        ),
        memberships=await memberships(registry, actor, user, after="", limit=limit),
        roles=await roles(registry, actor, ListFilter(user=name), after="", limit=limit),
        sessions=tuple(live[:limit]),
        locks=tuple(paused),
        actions=frozenset(
            each for each in get_args(PersonAction) if is_allowed(actor, *RIGHTS[each], operates=bool(operators))
        ),
    )
