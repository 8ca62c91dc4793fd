"""Owners of entities, appointed by operators (D53, D54)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory.entities import addition
from corpid.flows.directory.finding import entity_named
from corpid.flows.directory.provisioning import invitation
from corpid.flows.directory.write import write
from corpid.rules.directory.changes import Precondition
from corpid.rules.directory.names import user_name as mapped
from corpid.rules.directory.plan import Change
from corpid.rules.directory.records import Administrator, Entity, Membership, User
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from corpid.outbound.passwords import Passwords
    from corpid.rules.directory.actors import Actor
    from corpid.rules.directory.member_details import MemberDetails
    from corpid.stores.sql.registry import Registry


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
    adding = await addition(registry, passwords, Entity, "entities", entity_id, members, new_user_id=str)
    invited = _invited(owner, entity_id, now=now, new_id=new_id) if owner is not None else []
    seen = [Precondition(Entity, (entity_id,), None), *_absent(invited)]
    await write(registry, actor, [*adding.prepared.plan.changes, *invited], seen=seen)


async def owners(registry: Registry, entity_id: str, *, actor: Actor) -> dict[str, str]:
    """The owners of an entity: user identifier → name.

    Raises Refused if there is no such entity, access.Forbidden, StoreUnavailable. Source: D53
    """
    await entity_named(registry, entity_id, actor=actor)
    held = [each.record for each in await registry.directory.administrators(entity_id) if each.record.level == "owner"]
    users = await registry.directory.read(User, [(each.user_id,) for each in held])
    memberships = await registry.directory.read(Membership, [each.key for each in held])
    names = {key[0]: each.name for key, each in users.items()}
    return {each.user_id: names.get(each.user_id, "") or memberships[each.key].name for each in held}


async def appoint_owner(
    registry: Registry,
    entity_id: str,
    owner: str | MemberDetails,
    *,
    instead_of: str = "",
    actor: Actor,
    now: float,
    new_id: Callable[[], str],
) -> None:
    """Make somebody an owner, also in place of another one.

    `owner` is the user name of a member, or somebody to invite. `instead_of` is the user identifier of an owner, who
    stays a member without a level. Both changes are made or none. Raises InvalidInput, InvalidDetails, Refused,
    access.Forbidden, Conflict, StoreUnavailable. Source: D53, D54, D60
    """
    await entity_named(registry, entity_id, actor=actor)
    held = {each.record.user_id: each.record for each in await registry.directory.administrators(entity_id)}
    changes: list[Change] = []
    seen: list[Precondition] = []
    if isinstance(owner, str):
        user, membership = await _member(registry, owner, entity_id)
        was = held.get(user.user_id)
        if was is not None and was.level == "owner":
            raise InvalidInput(phrase("This person is an owner already."), field="user_name")
        becomes = Administrator(user_id=user.user_id, entity_id=entity_id, level="owner")
        verb = "add" if was is None else "change"
        changes.append(Change(verb=verb, kind="administrator", key=becomes.key, was=was, becomes=becomes))  # type: ignore[arg-type]
        seen = [Precondition(User, user.key, user), Precondition(Membership, membership.key, membership)]
    else:
        changes += _invited(owner, entity_id, now=now, new_id=new_id)
        seen = _absent(changes)
    if instead_of:
        gone = held.get(instead_of)
        if gone is None or gone.level != "owner":
            raise InvalidInput(phrase("This person is no longer an owner. Choose again."), field="instead_of")
        changes.append(Change(verb="remove", kind="administrator", key=gone.key, was=gone))
    await write(registry, actor, changes, seen=seen)


def _invited(details: MemberDetails, entity_id: str, *, now: float, new_id: Callable[[], str]) -> list[Change]:
    """The invitation of an owner, with the level."""
    invited = invitation(details, entity_id, now=now, new_id=new_id, enabled=True, send=True)
    level = Administrator(user_id=invited.key[0], entity_id=entity_id, level="owner")
    return [invited, Change(verb="add", kind="administrator", key=level.key, becomes=level)]


def _absent(changes: Sequence[Change]) -> list[Precondition]:
    """Guards of invitations: the store adds a placeholder to a new one."""
    return [Precondition(Membership, each.key, None) for each in changes if each.kind == "membership"]


async def _member(registry: Registry, user_name: str, entity_id: str) -> tuple[User, Membership]:
    """A member who can act."""
    try:
        user = await registry.directory.user_by_name(mapped(user_name))
    except ValueError:
        user = None
    key = (user.user_id, entity_id) if user is not None else ("", "")
    membership = (await registry.directory.read(Membership, [key])).get(key) if user is not None else None
    if user is None or membership is None or membership.invited:
        raise InvalidInput(phrase("Nobody with this user name belongs to the organisation."), field="user_name")
    if not user.enabled or not membership.enabled:
        raise InvalidInput(phrase("This person cannot sign in for the organisation at present."), field="user_name")
    return user, membership
