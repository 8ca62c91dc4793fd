"""Request contexts for tests that call flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows.request_context import RequestContext

if TYPE_CHECKING:
    from corpid.flows.request_context import Provider


async def context(provider: Provider, *, now: float | None = None, address: str = "127.0.0.1") -> RequestContext:
    """The context of a request from `address`, at the provider's time unless another is given."""
    at = provider.clock() if now is None else now
    keys = await provider.signing_keys.keys_at(at)
    return RequestContext(provider=provider, keys=keys, now=at, request_id="r", address=address)
