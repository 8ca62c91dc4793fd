"""Request contexts for tests that call flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows.request_context import Provider, RequestContext
from corpid.rules.directory.lists import MEMBERS

if TYPE_CHECKING:
    from corpid.rules.directory.records import Membership, User
    from corpid.stores.sql.registry import Registry


async def context(provider: Provider, *, now: float | None = None, address: str = "127.0.0.1") -> RequestContext:
    """The context of a request from `address`, at the provider's time unless another is given."""
    at = provider.clock() if now is None else now
    keys = await provider.signing_keys.keys_at(at)
    return RequestContext(provider=provider, keys=keys, now=at, request_id="r", address=address)


async def belonging(registry: Registry, entity_id: str, *, limit: int = 100) -> list[tuple[Membership, User]]:
    """The memberships of an entity, with their people."""
    found = await registry.lists.find(MEMBERS, {"entity_id": entity_id}, limit=limit)
    return [(each.membership, each.user) for each in found]
