"""Levels: administrators and owners of entities, and operators of the deployment (D53, D54).

An entity's administrators give and take levels (`appoint_member`, `dismiss_member`: what needs approval is requested),
operators appoint its owners. Commands set any level under the rules of a file (`single_records`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows.directory.actors import is_last_owner
from corpid.flows.directory.apply import prepare_addition
from corpid.flows.directory.lists import find_entity
from corpid.flows.directory.members import find_person, plan_invitation
from corpid.flows.directory.person_names import read_members
from corpid.flows.directory.write import write_changes
from corpid.rules.directory.access import (
    APPOINTS,
    Actor,
    Condition,
    EntityAdministrator,
    Level,
    Object,
    authorise,
    find_obstacle,
)
from corpid.rules.directory.memberships import Member
from corpid.rules.directory.records import (
    Administrator,
    AppointmentStatus,
    Change,
    Entity,
    MemberDetails,
    Membership,
    Precondition,
    User,
)
from corpid.texts import InvalidInput, phrase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from corpid.outbound.passwords import Passwords
    from corpid.stores.sql.registry import Registry

_LEVELS: Final[tuple[Level, ...]] = ("owner", "administrator", "sub_administrator", "")


class MemberLevel(Member, frozen=True, kw_only=True):
    """A member of an entity, with their level there, if any."""

    administrator: Administrator | None = None
    last_owner: bool = False
    """whether the entity would have no owner who can act without them"""

    @property
    def level(self) -> Level:
        """The level; empty for none."""
        return self.administrator.level if self.administrator is not None else ""


async def list_administrators(registry: Registry, actor: EntityAdministrator) -> list[MemberLevel]:
    """The administrators of the actor's entity: by level, then by name.

    Raises access.Forbidden, StoreUnavailable. Source: D53
    """
    authorise(actor, "read", Object(kind="administrator", entity_id=actor.entity_id))
    held = await registry.directory.administrators(actor.entity_id)
    members = await read_members(registry.directory, [each.record.key for each in held])
    found = [_with_level(members[each.record.key], each.record, held) for each in held if each.record.key in members]
    return sorted(found, key=lambda each: (_LEVELS.index(each.level), each.name.casefold(), each.user.user_id))


def _with_level(
    member: Member, administrator: Administrator | None, held: Sequence[AppointmentStatus[Administrator]]
) -> MemberLevel:
    return MemberLevel(
        user=member.user,
        membership=member.membership,
        administrator=administrator,
        last_owner=administrator is not None and is_last_owner(administrator, held),
    )


async def load_member_level(registry: Registry, actor: EntityAdministrator, membership_id: str) -> MemberLevel | None:
    """A member of the actor's entity; None if there is none.

    Raises access.Forbidden, StoreUnavailable. Source: D53, D60
    """
    authorise(actor, "read", Object(kind="administrator", entity_id=actor.entity_id))
    stored = await registry.provisioning.member(membership_id)
    if stored is None or stored.membership.entity_id != actor.entity_id:
        return None
    held = await registry.directory.administrators(actor.entity_id)
    mine = next((each.record for each in held if each.record.key == stored.membership.key), None)
    return _with_level(stored, mine, held)


def find_refusal(actor: EntityAdministrator, held: MemberLevel, becomes: Level) -> Condition | None:
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


async def add_entity_with_owner(
    registry: Registry,
    passwords: Passwords,
    entity_id: str,
    members: Mapping[str, object],
    owner: MemberDetails | None,
    *,
    actor: Actor,
    now: float,
    new_id: Callable[[], str],
) -> None:
    """Add an entity and invite its first owner: both or neither.

    `members` as in a directory file, `owner` None to invite nobody; `now` is in epoch seconds, `new_id` gives UUIDs.
    Raises Refused, InvalidDetails, access.Forbidden, Conflict, StoreUnavailable. Source: R-12.4, D53, D60
    """
    _, prepared = await prepare_addition(registry, passwords, Entity, entity_id, members)
    invited = _plan_owner_invitation(owner, entity_id, now=now, new_id=new_id) if owner is not None else []
    await write_changes(registry, actor, [*prepared.changes, *invited], planned=True)


async def list_owners(registry: Registry, entity_id: str, *, actor: Actor) -> dict[str, str]:
    """The owners of an entity: user identifier → who it is.

    Raises Refused if there is no such entity, access.Forbidden, StoreUnavailable. Source: D53, D68
    """
    await find_entity(registry, entity_id, actor=actor)
    held = [each.record for each in await registry.directory.administrators(entity_id) if each.record.level == "owner"]
    found = await read_members(registry.directory, [each.key for each in held])
    return {each.user.user_id: each.name for each in found.values()}


async def find_new_owner(registry: Registry, entity_id: str, user_name: str, *, actor: Actor) -> Member:
    """Return the member of a user name, who can become an owner.

    Nobody whom the organisation calls by the name of another account. Raises InvalidInput, AmbiguousName, Refused if
    there is no such entity, access.Forbidden, StoreUnavailable. Source: D53, D68
    """
    await find_entity(registry, entity_id, actor=actor)
    authorise(actor, "read", Object(kind="membership", entity_id=entity_id))
    user = await find_person(registry, entity_id, user_name, of_entity=False)
    key = (user.user_id if user is not None else "", entity_id)
    found = (await read_members(registry.directory, [key])).get(key)
    if found is None or found.membership.invited:
        raise InvalidInput(phrase("Nobody with this user name belongs to the organisation."), field="user_name")
    if found.state != "active":
        raise InvalidInput(phrase("This person cannot sign in for the organisation at present."), field="user_name")
    level = await registry.directory.find(Administrator, *key)
    if level is not None and level.level == "owner":
        raise InvalidInput(phrase("This person is already an owner."), field="user_name")
    return found


async def appoint_owner(
    registry: Registry,
    entity_id: str,
    owner: Member | MemberDetails,
    *,
    instead_of: str = "",
    actor: Actor,
    now: float,
    new_id: Callable[[], str],
) -> None:
    """Make somebody an owner, also in place of another one.

    `owner` is a member as `find_new_owner` gave them, or somebody to invite. `instead_of` is the user identifier of an
    owner, who stays a member without a level. Both changes are made or none. Raises InvalidInput, InvalidDetails,
    Refused, access.Forbidden, Conflict, StoreUnavailable. Source: D53, D54, D60
    """
    await find_entity(registry, entity_id, actor=actor)
    held = {each.record.user_id: each.record for each in await registry.directory.administrators(entity_id)}
    changes: list[Change] = []
    seen: list[Precondition] = []
    if isinstance(owner, Member):
        user, membership = owner.user, owner.membership
        becomes = Administrator(user_id=user.user_id, entity_id=entity_id, level="owner")
        changes.append(Change(held.get(user.user_id), becomes))
        seen = [Precondition(User, user.key, user), Precondition(Membership, membership.key, membership)]
    else:
        changes += _plan_owner_invitation(owner, entity_id, now=now, new_id=new_id)
    if instead_of:
        gone = held.get(instead_of)
        if gone is None or gone.level != "owner":
            raise InvalidInput(phrase("This person is no longer an owner. Choose again."), field="instead_of")
        changes.append(Change(gone, None))
    await write_changes(registry, actor, changes, seen=seen, planned=True)


def _plan_owner_invitation(
    details: MemberDetails, entity_id: str, *, now: float, new_id: Callable[[], str]
) -> list[Change]:
    invited = plan_invitation(details, entity_id, now=now, new_id=new_id, enabled=True, send=True)
    level = Administrator(user_id=invited.key[0], entity_id=entity_id, level="owner")
    return [invited, Change(None, level)]
