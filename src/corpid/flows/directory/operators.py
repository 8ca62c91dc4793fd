"""Operators of the deployment, by the rules of a file (D53)."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from corpid.flows.directory.entities import SETS, carried_out, one_change, prepared_entry
from corpid.flows.directory.finding import user_named
from corpid.flows.directory.write import Refused
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.plan import Change
from corpid.rules.directory.records import Operator, OperatorLevel, User

if TYPE_CHECKING:
    from corpid.flows.directory.apply import ApplyResult
    from corpid.outbound.passwords import Passwords
    from corpid.rules.directory.actors import Actor
    from corpid.stores.sql.registry import Registry


async def operators(registry: Registry, *, actor: Actor) -> list[tuple[User, OperatorLevel]]:
    """The operators of the deployment, by level and user name.

    Raises access.Forbidden, StoreUnavailable. Source: D53
    """
    authorise(actor, "read", Object(kind="operator"))
    found = []
    for level in get_args(OperatorLevel):
        held = await registry.directory.operators(level)
        people = await registry.directory.read(User, [(each.record.user_id,) for each in held])
        found += [(user, level) for user in sorted(people.values(), key=lambda each: each.user_name)]
    return found


async def set_operator(
    registry: Registry,
    passwords: Passwords,
    user_name: str,
    level: str,
    *,
    actor: Actor,
    dry_run: bool = False,
) -> ApplyResult:
    """Make a person an operator, or change the level of one.

    Raises Refused with every fault, access.Forbidden, Conflict, StoreUnavailable. Source: D53, docs/directory.md
    """
    user = await user_named(registry, user_name, actor=actor)
    row = {"user": user.user_name, "level": level}
    prepared = await prepared_entry(registry, passwords, "operators", None, row, new_user_id=str)
    return await carried_out(registry, prepared, actor=actor, verbs=SETS, dry_run=dry_run)


async def remove_operator(registry: Registry, user_name: str, *, actor: Actor, dry_run: bool = False) -> ApplyResult:
    """Take the level of an operator.

    The last one who can act stays.

    Raises Refused if the person is none, access.Forbidden, Conflict, StoreUnavailable. Source: D53
    """
    user = await user_named(registry, user_name, actor=actor)
    held = (await registry.directory.read(Operator, [user.key])).get(user.key)
    if held is None:
        raise Refused(f"{user.user_name} does not operate this deployment: `corpid operator list` shows who does")
    change = Change(verb="remove", kind="operator", key=user.key, was=held)
    return await one_change(registry, change, actor=actor, dry_run=dry_run, user_names={user.user_id: user.user_name})
