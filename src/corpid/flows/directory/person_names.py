"""Names of people by identifier, for one entity (D61, D68)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.rules.directory.person_names import full_name, identity, labelled, name_outside, shown_name
from corpid.rules.directory.records import Membership, RequestedPerson, User

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from corpid.ports import Registry
    from corpid.rules.directory.plan import Change


async def names_of(
    registry: Registry,
    entity_id: str,
    members: Collection[str],
    *,
    former: Collection[str] = (),
    outside: Collection[str] = (),
) -> dict[str, str]:
    """Return the names of people, as an entity may see them.

    `members` who do not belong to it have no name. `former` belonged to it, if they no longer do; those `outside` act
    for it for a third party, and have only their own name. Nobody without a name is returned. Raises
    StoreUnavailable. Source: D61, D68
    """
    wanted = sorted({*members, *former, *outside} - {""})
    users = await registry.directory.read(User, [(user_id,) for user_id in wanted])
    held = await registry.directory.read(Membership, [(user_id, entity_id) for user_id in wanted])
    found: dict[str, str] = {}
    for (user_id,), user in users.items():
        membership = held.get((user_id, entity_id))
        if membership is not None:
            found[user_id] = shown_name(membership, user)
        elif user_id in former and not user.placeholder:
            found[user_id] = labelled(user.user_name, user.name)
        elif user_id in outside:
            found[user_id] = name_outside(user)
    return {user_id: name for user_id, name in found.items() if name}


async def people_of(
    registry: Registry, entity_id: str, changes: Iterable[Change], requester: str
) -> tuple[RequestedPerson, ...]:
    """Return the people of some changes, and who asks for them.

    As the entity knows them now. `requester` is named as in the audit. Somebody whom the changes invite is known by their address. Raises
    StoreUnavailable. Source: D68
    """
    kind, _, identifier = requester.partition(":")
    wanted = {identifier} if kind == "user" else set()
    invited: dict[str, Membership] = {}
    for change in changes:
        record = change.becomes or change.was
        wanted.add(str(getattr(record, "user_id", "")))
        if isinstance(record, Membership) and record.invited:
            invited[record.user_id] = record
    ids = sorted(wanted - {""})
    users = await registry.directory.read(User, [(user_id,) for user_id in ids])
    held = await registry.directory.read(Membership, [(user_id, entity_id) for user_id in ids])
    found = []
    for user_id in ids:
        membership, user = held.get((user_id, entity_id)) or invited.get(user_id), users.get((user_id,))
        if membership is not None and (membership.invited or user is not None):
            nobody = user or User(user_id=user_id, user_name="", name="", placeholder=True)
            found.append(
                RequestedPerson(
                    user_id=user_id,
                    identity=identity(membership, nobody),
                    name=full_name(membership, nobody),
                    invited=membership.invited,
                )
            )
        elif user is not None and not user.placeholder:
            found.append(RequestedPerson(user_id=user_id, identity=user.user_name, name=user.name))
    return tuple(found)
