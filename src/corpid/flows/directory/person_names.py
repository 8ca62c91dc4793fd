"""Names of people by identifier, for one entity (D61)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.rules.directory.person_names import name_outside, shown_name
from corpid.rules.directory.records import Membership, User

if TYPE_CHECKING:
    from collections.abc import Collection

    from corpid.ports import Registry


async def names_of(
    registry: Registry, entity_id: str, members: Collection[str], *, also: Collection[str] = ()
) -> dict[str, str]:
    """Return the names of people, as an entity may see them.

    `members` who do not belong to it have no name; those in `also`, who may be a third party's or have belonged to it,
    have their own. Nobody without a name is returned. Raises StoreUnavailable. Source: D61
    """
    wanted = sorted({*members, *also} - {""})
    users = await registry.directory.read(User, [(user_id,) for user_id in wanted])
    held = await registry.directory.read(Membership, [(user_id, entity_id) for user_id in wanted])
    found: dict[str, str] = {}
    for (user_id,), user in users.items():
        membership = held.get((user_id, entity_id))
        if membership is not None:
            found[user_id] = shown_name(membership, user)
        elif user_id in also:
            found[user_id] = name_outside(user)
    return {user_id: name for user_id, name in found.items() if name}
