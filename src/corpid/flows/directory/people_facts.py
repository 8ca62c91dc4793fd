"""Facts about people for the rules of access."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from corpid.rules.directory.access import Forbidden, Object, authorise
from corpid.rules.directory.actors import DeploymentOperator
from corpid.rules.directory.records import Operator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corpid.rules.directory.access import Action
    from corpid.rules.directory.actors import Actor
    from corpid.stores.sql.registry import Registry

T = TypeVar("T")


async def authorise_on_person(registry: Registry, actor: Actor, action: Action, thing: Object) -> None:
    """Authorise with the fact whether the person operates the deployment.

    Raises access.Forbidden, StoreUnavailable. Source: D53
    """
    operates = await registry.directory.read(Operator, [(thing.user_id,)])
    authorise(actor, action, replace(thing, operates=bool(operates)))


def authorise_list(actor: Actor, thing: Object) -> None:
    """Authorise a list of people, which `visible` narrows.

    Raises access.Forbidden. Source: D53
    """
    authorise(actor, "read", replace(thing, operates=False) if isinstance(actor, DeploymentOperator) else thing)


async def visible(
    registry: Registry, actor: Actor, thing: Object, found: Sequence[T], user_id: Callable[[T], str]
) -> tuple[T, ...]:
    """Those of some records whose people the actor may read about.

    `thing` is the object of a list. Only people who operate the deployment are looked at one by one. Raises
    StoreUnavailable. Source: D53
    """
    if not isinstance(actor, DeploymentOperator) or not found:
        return tuple(found)
    operators = await registry.directory.read(Operator, {(user_id(each),) for each in found})
    hidden = {key[0] for key in operators if not _may_read(actor, replace(thing, user_id=key[0], operates=True))}
    return tuple(each for each in found if user_id(each) not in hidden)


def _may_read(actor: Actor, thing: Object) -> bool:
    try:
        authorise(actor, "read", thing)
    except Forbidden:
        return False
    return True
