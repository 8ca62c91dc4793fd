"""Single memberships: given, suspended, restored and ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows.directory.administrators import has_owner_beside
from corpid.flows.directory.apply import PlanWithNames
from corpid.flows.directory.entities import ADDS, carried_out, prepared_entry
from corpid.flows.directory.finding import entity_named, user_named
from corpid.flows.directory.write import Refused
from corpid.rules.directory.nodes import Problem
from corpid.rules.directory.plan import Change, Plan
from corpid.rules.directory.records import Administrator, Assignment, Membership, ThirdPartyAssignment

if TYPE_CHECKING:
    from corpid.flows.directory.apply import ApplyResult
    from corpid.outbound.passwords import Passwords
    from corpid.rules.directory.actors import Actor
    from corpid.rules.directory.plan import Verb
    from corpid.rules.directory.records import User
    from corpid.stores.sql.registry import Registry

_CHANGES: Final[frozenset[Verb]] = frozenset({"change"})
_REMOVES: Final[frozenset[Verb]] = frozenset({"remove"})
_MOST: Final = 1000
"""roles of one person for one entity that one command ends"""


async def add_membership(
    registry: Registry, passwords: Passwords, user_name: str, entity_id: str, *, actor: Actor, dry_run: bool = False
) -> ApplyResult:
    """Let a person act for an entity, if they do not yet.

    Raises write.Refused if there is no such person or entity, access.Forbidden, Conflict, StoreUnavailable. Source:
    D53
    """
    user = await user_named(registry, user_name, actor=actor)
    await entity_named(registry, entity_id, actor=actor)
    members = {"memberships": [entity_id]}
    prepared = await prepared_entry(registry, passwords, "users", user.user_name, members, new_user_id=str)
    return await carried_out(registry, prepared, actor=actor, verbs=ADDS, dry_run=dry_run)


async def switch_membership(
    registry: Registry,
    passwords: Passwords,
    user_name: str,
    entity_id: str,
    *,
    enabled: bool,
    actor: Actor,
    dry_run: bool = False,
) -> ApplyResult:
    """Suspend or restore a membership.

    Its level and roles stay, without effect meanwhile. Remarks on an entity whose last owner it was. Raises
    write.Refused if the person does not act for the entity, access.Forbidden, Conflict, StoreUnavailable. Source:
    D50, D60
    """
    user, _ = await _held(registry, user_name, entity_id, actor=actor)
    members = {"memberships": [{"entity": entity_id, "enabled": enabled}]}
    prepared = await prepared_entry(registry, passwords, "users", user.user_name, members, new_user_id=str)
    return await carried_out(registry, prepared, actor=actor, verbs=_CHANGES, dry_run=dry_run)


async def remove_membership(
    registry: Registry, user_name: str, entity_id: str, *, actor: Actor, dry_run: bool = False
) -> ApplyResult:
    """End a membership, with its level and roles.

    Each is a change of its own. An operator may end that of the last owner, which is remarked on. Raises
    write.Refused if the person does not act for the entity, access.Forbidden, Conflict, StoreUnavailable. Source:
    D53, D54
    """
    user, membership = await _held(registry, user_name, entity_id, actor=actor)
    where = {"user_id": user.user_id, "entity_id": entity_id}
    changes = [
        *(
            Change(verb="remove", kind="third-party row", key=row.key, was=row)
            for row in await registry.directory.page(ThirdPartyAssignment, where, after=("",) * 7, limit=_MOST)
        ),
        *(
            Change(verb="remove", kind="assignment", key=row.key, was=row)
            for row in await registry.directory.page(Assignment, where, after=("",) * 6, limit=_MOST)
        ),
    ]
    remarks: list[Problem] = []
    level = (await registry.directory.read(Administrator, [membership.key])).get(membership.key)
    if level is not None:
        changes.append(Change(verb="remove", kind="administrator", key=level.key, was=level))
        administrators = await registry.directory.administrators(entity_id)
        if level.level == "owner" and not has_owner_beside(level.key, administrators):
            remarks.append(Problem(0, f"the entity {entity_id} will have no owner who can act"))
    changes.append(Change(verb="remove", kind="membership", key=membership.key, was=membership))
    plan = Plan(changes=tuple(changes), warnings=tuple(remarks))
    prepared = PlanWithNames(plan=plan, user_names={user.user_id: user.user_name})
    return await carried_out(registry, prepared, actor=actor, verbs=_REMOVES, dry_run=dry_run)


async def _held(registry: Registry, user_name: str, entity_id: str, *, actor: Actor) -> tuple[User, Membership]:
    user = await user_named(registry, user_name, actor=actor)
    await entity_named(registry, entity_id, actor=actor)
    key = (user.user_id, entity_id)
    found = (await registry.directory.read(Membership, [key])).get(key)
    if found is None:
        raise Refused(
            f"{user.user_name} does not act for {entity_id}: `corpid entity list --user {user.user_name}` shows for whom"
        )
    return user, found
