"""Placing orders of the sandbox (D66)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows.operations import signing_keys
from corpid.rules.developer import order_documents
from corpid.rules.developer.order_documents import Unfit
from corpid.rules.developer.orders import RESOURCES
from corpid.rules.directory.actors import CommandLine

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from corpid.flows.developer.orders import Orders, Placed
    from corpid.flows.developer.sandbox_keys import SandboxKeys
    from corpid.flows.request_context import RequestContext
    from corpid.rules.developer.order_documents import Order

_ACTOR: Final = CommandLine(by="developer mode")


async def place(
    context: RequestContext, orders: Orders, keys: SandboxKeys, documents: Iterable[Mapping[str, object]]
) -> list[Placed]:
    """Put orders in force, all or none.

    Those that are done at once are carried out. Raises Unfit, TooMany. Source: D66
    """
    wanted = [order_documents.read(document) for document in documents]
    for order in wanted:
        _require_endpoint(context, order)
        await _require_client(context, order)
    placed = orders.place(wanted, issuer_id=context.provider.policy.issuer_id, now=context.now)
    for each in placed:
        if each.order.kind.once:
            orders.withdraw(each.order_id, issuer_id=each.issuer_id)
            await _rotate(context, withdraw=bool(each.order.members.get("withdraw")))
            each.obeyed, each.left = 1, 0
        elif each.order.name == "signing-key":
            await keys.look_for_retired(context.provider, context.now)
    return placed


def _require_endpoint(context: RequestContext, order: Order) -> None:
    """Refuse an endpoint that this issuer does not have (Spec 2.1)."""
    policy, endpoint = context.provider.policy, order.text("endpoint")
    resources = {each.name for generation in policy.served for each in generation.resources}
    if (endpoint == "par" and policy.pushed is None) or (endpoint in RESOURCES and endpoint not in resources):
        raise Unfit("endpoint", f"this issuer has no {endpoint}")


async def _require_client(context: RequestContext, order: Order) -> None:
    client_id = order.client_id
    if client_id is not None and await context.provider.registry_cache.client(client_id, context.now) is None:
        raise Unfit("client_id", "is no client that is enabled at this issuer")


async def _rotate(context: RequestContext, *, withdraw: bool) -> None:
    """Make a new key that signs at once. Source: Spec 9, D42"""
    provider, now = context.provider, context.now
    before = (await provider.signing_keys.at(now)).ring.active.kid
    await signing_keys.rotate(provider.registry, _ACTOR, now=now, at_once=True)
    if withdraw:
        await signing_keys.revoke(provider.registry, _ACTOR, before, now=now)
    provider.signing_keys.drop()
