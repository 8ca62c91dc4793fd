"""Single roles and administrators, by the rules of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows.directory.administrators import has_owner_beside
from corpid.flows.directory.approvals import submit
from corpid.flows.directory.entities import SETS, carried_out, one_change, prepared_entry
from corpid.flows.directory.finding import RowFilter, entity_named, only_one, service_named, user_named
from corpid.flows.directory.provisioning import Member
from corpid.flows.directory.write import Refused
from corpid.rules.directory.access import Object, authorise, find_obstacle
from corpid.rules.directory.access_conditions import APPOINTS, Condition
from corpid.rules.directory.approvals import change_needs_approval, unfit
from corpid.rules.directory.changes import Precondition
from corpid.rules.directory.current import Current
from corpid.rules.directory.effect import in_words
from corpid.rules.directory.plan import Change
from corpid.rules.directory.records import (
    NO_END,
    Administrator,
    AdministratorServices,
    Assignment,
    Entity,
    Membership,
    Service,
    User,
)
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.directory.apply import ApplyResult
    from corpid.outbound.passwords import Passwords
    from corpid.rules.directory.access import Level
    from corpid.rules.directory.actors import Actor, EntityAdministrator
    from corpid.rules.directory.records import AdministratorLevel, ChangeRequest
    from corpid.stores.sql.registry import Registry

_LEVELS: Final[tuple[Level, ...]] = ("owner", "administrator", "sub_administrator", "")
_MOST: Final = 1000
"""roles of one person for one entity at one service that are looked through"""


class RoleFilter(RowFilter, frozen=True, kw_only=True):
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
) -> ApplyResult:
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


async def remove_role(registry: Registry, wanted: RoleFilter, *, actor: Actor, dry_run: bool = False) -> ApplyResult:
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
) -> ApplyResult:
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
) -> ApplyResult:
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


class MemberLevel(Member, frozen=True, kw_only=True):
    """A member of an entity, with their level there, if any."""

    administrator: Administrator | None = None
    last_owner: bool = False
    """whether the entity would have no owner who can act without them"""

    @property
    def level(self) -> Level:
        """The level; empty for none."""
        return self.administrator.level if self.administrator is not None else ""


async def administering(registry: Registry, actor: EntityAdministrator) -> list[MemberLevel]:
    """The administrators of the actor's entity: by level, then by name.

    Raises access.Forbidden, StoreUnavailable. Source: D53
    """
    authorise(actor, "read", Object(kind="administrator", entity_id=actor.entity_id))
    held = await registry.directory.administrators(actor.entity_id)
    users = await registry.directory.read(User, [each.record.key[:1] for each in held])
    memberships = await registry.directory.read(Membership, [each.record.key for each in held])
    found = [
        MemberLevel(
            user=users[each.record.key[:1]],
            membership=memberships[each.record.key],
            administrator=each.record,
            last_owner=each.record.level == "owner" and not has_owner_beside(each.record.key, held),
        )
        for each in held
        if each.record.key[:1] in users and each.record.key in memberships
    ]
    return sorted(found, key=lambda each: (_LEVELS.index(each.level), each.name.casefold(), each.user.user_id))


async def member(registry: Registry, actor: EntityAdministrator, membership_id: str) -> MemberLevel | None:
    """A member of the actor's entity; None if there is none.

    Raises access.Forbidden, StoreUnavailable. Source: D53, D60
    """
    authorise(actor, "read", Object(kind="administrator", entity_id=actor.entity_id))
    stored = await registry.provisioning.member(membership_id)
    if stored is None or stored.membership.entity_id != actor.entity_id:
        return None
    held = await registry.directory.administrators(actor.entity_id)
    mine = next((each.record for each in held if each.record.key == stored.membership.key), None)
    return MemberLevel(
        user=stored.user,
        membership=stored.membership,
        administrator=mine,
        last_owner=mine is not None and mine.level == "owner" and not has_owner_beside(mine.key, held),
    )


def refusal(actor: EntityAdministrator, held: MemberLevel, becomes: Level) -> Condition | None:
    """The condition that keeps the actor from giving a level.

    The empty level takes one away. None if nothing does, but perhaps a sign-in that is too old. Source: D53, D54
    """
    thing = Object(
        kind="administrator",
        entity_id=actor.entity_id,
        user_id=held.user.user_id,
        level=held.level,
        becomes=becomes,
        belongs=True,
        takes_last_owner=held.last_owner and becomes != "owner",
    )
    return find_obstacle(actor, "write" if becomes else "delete", thing, unruled=APPOINTS)


def needs_approval(entity: Entity) -> bool:
    """Return whether a change of a level becomes a request. Source: D55"""
    return change_needs_approval(Change(verb="add", kind="administrator", key=()), "", entity, None)


async def appoint(
    registry: Registry,
    actor: EntityAdministrator,
    held: MemberLevel,
    level: AdministratorLevel,
    services: AdministratorServices,
    *,
    reason: str,
    now: float,
    unique: str,
) -> ChangeRequest | None:
    """Give a member a level, or request it if that needs approval.

    `services` are of a sub-administrator only; `reason`, `now` and `unique` as in `approvals.submit`. Raises Refused,
    also for services of another level, access.Forbidden, Conflict, StoreUnavailable. Source: D53, D54, D55, D68
    """
    user_id, entity_id = key = held.membership.key
    becomes = Administrator(user_id=user_id, entity_id=entity_id, level=level, services=services)
    was = held.administrator
    if becomes == was:
        return None
    change = Change(verb="change" if was else "add", kind="administrator", key=key, was=was, becomes=becomes)
    named = becomes.services if isinstance(becomes.services, tuple) else ()
    current = {
        "entity": dict(await registry.directory.read(Entity, [(entity_id,)])),
        "membership": dict(await registry.directory.read(Membership, [key])),
        "service": dict(await registry.directory.read(Service, [(each,) for each in named])),
    }
    problems = unfit([change], Current(records=current), {user_id: held.user.user_name})  # type: ignore[arg-type]
    if problems:
        raise Refused("; ".join(problems))
    seen = [Precondition(Administrator, key, was), Precondition(Membership, key, held.membership)]
    return await submit(registry, actor, [change], reason=reason, now=now, unique=unique, seen=seen)


async def dismiss(
    registry: Registry, actor: EntityAdministrator, held: MemberLevel, *, reason: str, now: float, unique: str
) -> ChangeRequest | None:
    """Take a member's level away, or request it; membership and roles stay.

    Raises Refused if there is none, access.Forbidden, Conflict, StoreUnavailable. Source: D53, D54, D55
    """
    was = held.administrator
    if was is None:
        raise Refused(phrase("this person does not administer the entity any more"))
    change = Change(verb="remove", kind="administrator", key=was.key, was=was)
    seen = [Precondition(Administrator, was.key, was), Precondition(Membership, was.key, held.membership)]
    return await submit(registry, actor, [change], reason=reason, now=now, unique=unique, seen=seen)
