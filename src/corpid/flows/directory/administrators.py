"""Administrators and operators: who must remain after a change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.ports import Remains
from corpid.rules.directory.records import Operator, User

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpid.ports import Registry
    from corpid.rules.directory.plan import Change


def remaining(changes: Iterable[Change]) -> list[Remains]:
    """Return who must remain after the changes, whoever makes them.

    An operator of the deployment, if the changes take one. Source: D53
    """
    return [Remains()] if any(_takes_operator(change) for change in changes) else []


def _takes_operator(change: Change) -> bool:
    was, becomes = change.was, change.becomes
    if isinstance(was, Operator):
        return was.level == "operator" and getattr(becomes, "level", "") != "operator"
    return isinstance(was, User) and was.enabled and not getattr(becomes, "enabled", False)


async def entities_without_owner(registry: Registry, user_id: str) -> list[str]:
    """Return the entities whose only owner who can act is this person.

    Raises StoreUnavailable. Source: D54
    """
    found = []
    for held in await registry.directory.administered(user_id):
        administrators = await registry.directory.administrators(held.entity_id)
        owners = {each.record.user_id for each in administrators if each.record.level == "owner" and each.enabled}
        found += [held.entity_id] if held.level == "owner" and not owners - {user_id} else []
    return found
