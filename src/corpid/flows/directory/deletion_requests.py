"""Requests of people to be deleted, for those who administer (D61)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.flows.directory.lists import ListPage, cut_page
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.records import DeletionRequest, User

if TYPE_CHECKING:
    from corpid.rules.directory.actors import Actor
    from corpid.stores.sql.registry import Registry


class PendingDeletion(msgspec.Struct, frozen=True, kw_only=True):
    """A request to be deleted, and its person."""

    user: User
    requested_at: int


async def requests(registry: Registry, actor: Actor, *, after: str, limit: int) -> ListPage[PendingDeletion]:
    """List the requests to be deleted, by the identifiers of people.

    Raises access.Forbidden, StoreUnavailable. Source: D61
    """
    authorise(actor, "read", Object(kind="deletion request"))
    found = await registry.directory.page(DeletionRequest, {}, after=(after,), limit=limit + 1)
    users = await registry.directory.read(User, [each.key for each in found])
    page = cut_page(found, limit, [each.user_id for each in found])
    known = ((users.get(each.key), each.requested_at) for each in page.found)
    return ListPage(
        found=tuple(PendingDeletion(user=user, requested_at=at) for user, at in known if user is not None),
        after=page.after,
    )


async def requested_at(registry: Registry, actor: Actor, user_id: str) -> int:
    """Return when a person asked to be deleted, in epoch seconds.

    0: they did not. Raises access.Forbidden, StoreUnavailable. Source: D61
    """
    authorise(actor, "read", Object(kind="deletion request", user_id=user_id))
    found = (await registry.directory.read(DeletionRequest, [(user_id,)])).get((user_id,))
    return found.requested_at if found is not None else 0
