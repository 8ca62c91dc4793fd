"""Single roles, administrators and operators, by the rules of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

from corpid.flows.directory.administrators import has_owner_beside
from corpid.flows.directory.entities import SETS, carried_out, one_change, prepared_entry
from corpid.flows.directory.finding import WantedRow, entity_named, only_one, service_named, user_named
from corpid.flows.directory.write import Refused
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.effect import in_words
from corpid.rules.directory.plan import Change
from corpid.rules.directory.records import NO_END, Assignment, Operator, OperatorLevel, User

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.directory.apply import Applied
    from corpid.ports import Passwords, Registry
    from corpid.rules.directory.actors import Actor

_MOST: Final = 1000
"""roles of one person for one entity at one service that are looked through"""


class WantedRole(WantedRow, frozen=True, kw_only=True):
    """A role by its key, as far as it is known."""

    user: str
    entity: str
    service: str


async def add_role(
    registry: Registry,
    passwords: Passwords,
    user_name: str,
    entity_id: str,
    service_id: str,
    members: Mapping[str, object],
    *,
    actor: Actor,
    dry_run: bool = False,
) -> Applied:
    """Give a person a role, or change one that is there.

    `members` as in a directory file, None for those not given. Raises Refused with every fault, access.Forbidden,
    Conflict, StoreUnavailable. Source: R-14, D53, docs/directory.md
    """
    user = await user_named(registry, user_name, actor=actor)
    await entity_named(registry, entity_id, actor=actor)
    await service_named(registry, service_id, actor=actor)
    row = {"user": user.user_name, "entity": entity_id, "service": service_id, **members}
    prepared = await prepared_entry(registry, passwords, "assignments", None, row, new_user_id=str)
    return await carried_out(registry, prepared, actor=actor, verbs=SETS, dry_run=dry_run)


async def remove_role(registry: Registry, wanted: WantedRole, *, actor: Actor, dry_run: bool = False) -> Applied:
    """Take one role from a person.

    Raises Refused if there is none or more than one, access.Forbidden, Conflict, StoreUnavailable. Source: R-14, D53
    """
    user = await user_named(registry, wanted.user, actor=actor)
    await entity_named(registry, wanted.entity, actor=actor)
    await service_named(registry, wanted.service, actor=actor)
    where = {"user_id": user.user_id, "entity_id": wanted.entity, "service_id": wanted.service}
    held = await registry.directory.page(Assignment, where, after=("",) * 6, limit=_MOST)
    none = f"{user.user_name} has no {'such ' if held else ''}role for {wanted.entity} at {wanted.service}"
    found = [row for row in held if wanted.fits(row)]
    row = only_one(found, none=none, several="several roles are meant", note=_last_day, among=held)
    change = Change(verb="remove", kind="assignment", key=row.key, was=row)
    names = {user.user_id: user.user_name}
    return await one_change(registry, change, actor=actor, dry_run=dry_run, user_names=names)


def _last_day(row: Assignment) -> str:
    return "" if row.end_date == NO_END else f"until {in_words(row.end_date)}"


async def set_administrator(
    registry: Registry,
    passwords: Passwords,
    user_name: str,
    entity_id: str,
    members: Mapping[str, object],
    *,
    actor: Actor,
    dry_run: bool = False,
) -> Applied:
    """Make a member an administrator, or change the level of one.

    `members` as in a directory file, None for those not given. Raises Refused with every fault, access.Forbidden,
    Conflict, StoreUnavailable. Source: D53, D54, docs/directory.md
    """
    user = await user_named(registry, user_name, actor=actor)
    await entity_named(registry, entity_id, actor=actor)
    services = members.get("services")
    for service_id in services if isinstance(services, list) else ():
        await service_named(registry, service_id, actor=actor)
    row = {"user": user.user_name, "entity": entity_id, **members}
    prepared = await prepared_entry(registry, passwords, "administrators", None, row, new_user_id=str)
    return await carried_out(registry, prepared, actor=actor, verbs=SETS, dry_run=dry_run)


async def remove_administrator(
    registry: Registry, user_name: str, entity_id: str, *, actor: Actor, dry_run: bool = False
) -> Applied:
    """Take a person's level at an entity; the membership and roles stay.

    An operator may take the last owner, which is remarked on. Raises Refused if the person has none, access.Forbidden,
    Conflict, StoreUnavailable. Source: D53, D54
    """
    user = await user_named(registry, user_name, actor=actor)
    await entity_named(registry, entity_id, actor=actor)
    key = (user.user_id, entity_id)
    held = await registry.directory.administrators(entity_id)
    mine = next((each.record for each in held if each.record.key == key), None)
    if mine is None:
        raise Refused(
            f"{user.user_name} does not administer {entity_id}: `corpid administrator list --entity {entity_id}` shows who does"
        )
    is_last = mine.level == "owner" and not has_owner_beside(key, held)
    remarks = [f"the entity {entity_id} will have no owner who can act"] if is_last else []
    change = Change(verb="remove", kind="administrator", key=key, was=mine)
    names = {user.user_id: user.user_name}
    return await one_change(registry, change, actor=actor, dry_run=dry_run, user_names=names, remarks=remarks)


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
) -> Applied:
    """Make a person an operator, or change the level of one.

    Raises Refused with every fault, access.Forbidden, Conflict, StoreUnavailable. Source: D53, docs/directory.md
    """
    user = await user_named(registry, user_name, actor=actor)
    row = {"user": user.user_name, "level": level}
    prepared = await prepared_entry(registry, passwords, "operators", None, row, new_user_id=str)
    return await carried_out(registry, prepared, actor=actor, verbs=SETS, dry_run=dry_run)


async def remove_operator(registry: Registry, user_name: str, *, actor: Actor, dry_run: bool = False) -> Applied:
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
