"""Orders of the sandbox: placed, taken and withdrawn, in memory (D66).

An order is taken in one step without waiting, so two requests at the same moment never use the last of its `times`
twice.

Signing keys outside the key set, for orders of the sandbox (D66).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Final

from corpid.flows.operations import signing_keys
from corpid.jose import key_ring
from corpid.rules.directory.access import CommandLine
from corpid_dev.rules.orders import RESOURCES, InvalidOrder, Order, read

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from corpid.flows.request_context import Provider, RequestContext
    from corpid.jose.key_ring import SigningKey

MOST: Final = 200
OF_SIGN_IN_SECONDS: Final = 3600
"""after which an order for one sign-in is dropped: the sign-in is over"""
_ACTOR: Final = CommandLine(by="developer mode")


class TooManyOrders(Exception):
    """No further order can be placed."""


@dataclass(slots=True, kw_only=True)
class ActiveOrder:
    order_id: str
    order: Order
    issuer_id: str
    """the issuer at which it was placed, and is obeyed"""
    at: float
    """epoch seconds"""
    left: int | None
    """how often it is still obeyed; None: until it is withdrawn"""
    obeyed: int = 0

    @property
    def document(self) -> dict[str, object]:
        """The order as JSON, with what has become of it."""
        return {"id": self.order_id, **self.order.document, "left": self.left, "obeyed": self.obeyed}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOrigin:
    """The origin of a request, which orders may concern."""

    issuer_id: str
    client_id: str = ""
    """empty: the request names no client"""
    sign_in: Collection[str] = ()
    """the names of its sign-in: request_uri, or state"""


class Orders:
    """The orders in force at all issuers."""

    def __init__(self) -> None:
        self._placed: Final[dict[str, ActiveOrder]] = {}
        self._numbers: Final = count(1)

    def place(self, orders: Iterable[Order], *, issuer_id: str, now: float) -> list[ActiveOrder]:
        """Put orders in force, all or none. Raises TooManyOrders."""
        wanted = list(orders)
        self._make_room(now, len(wanted))
        if len(self._placed) + len(wanted) > MOST:
            raise TooManyOrders
        placed = [
            ActiveOrder(order_id=str(next(self._numbers)), order=order, issuer_id=issuer_id, at=now, left=order.times)
            for order in wanted
        ]
        self._placed.update({each.order_id: each for each in placed})
        return placed

    def list_orders(self, *, issuer_id: str, client_id: str | None = None) -> list[ActiveOrder]:
        """The orders in force, oldest first.

        Those of one client include those of every client.
        """
        return [
            each
            for each in self._placed.values()
            if each.issuer_id == issuer_id and (client_id is None or each.order.client_id in (None, client_id))
        ]

    def withdraw(self, order_id: str, *, issuer_id: str) -> bool:
        """End an order. Return whether it was in force."""
        known = order_id in self._placed and self._placed[order_id].issuer_id == issuer_id
        if known:
            del self._placed[order_id]
        return known

    def withdraw_all(self, *, issuer_id: str, client_id: str | None = None) -> int:
        """End every order, or those that name this client. Return how many."""
        found = [
            each.order_id
            for each in self._placed.values()
            if each.issuer_id == issuer_id and client_id in (None, each.order.client_id)
        ]
        for order_id in found:
            del self._placed[order_id]
        return len(found)

    def take(self, name: str, asked: RequestOrigin, fits: Callable[[Order], bool] = lambda _: True) -> Order | None:
        """Use an order once; None if there is none for this request.

        One for the sign-in comes before one for its client, and that before one for every client. Source: D66
        """
        found = [
            each
            for each in self._placed.values()
            if each.order.name == name and _concerns(each, asked) and fits(each.order)
        ]
        if not found:
            return None
        placed = min(found, key=lambda each: (each.order.sign_in is None, each.order.client_id is None))
        placed.obeyed += 1
        if placed.left is not None:
            placed.left -= 1
            if placed.left <= 0:
                del self._placed[placed.order_id]
        return placed.order

    def _make_room(self, now: float, wanted: int) -> None:
        """Drop orders of sign-ins: expired ones, and the oldest if need be."""
        of_sign_ins = [each for each in self._placed.values() if each.order.sign_in is not None]
        for each in of_sign_ins:
            if now - each.at > OF_SIGN_IN_SECONDS or len(self._placed) + wanted > MOST:
                del self._placed[each.order_id]


def _concerns(placed: ActiveOrder, asked: RequestOrigin) -> bool:
    order = placed.order
    return (
        placed.issuer_id == asked.issuer_id
        and (order.client_id is None or order.client_id == asked.client_id)
        and (order.sign_in is None or order.sign_in in asked.sign_in)
    )


async def place(
    context: RequestContext, orders: Orders, keys: SandboxKeys, documents: Iterable[Mapping[str, object]]
) -> list[ActiveOrder]:
    """Put orders in force, all or none.

    One that is carried out when it is placed is over then. Raises InvalidOrder, TooManyOrders. Source: D66
    """
    wanted = [read(document) for document in documents]
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
        raise InvalidOrder("endpoint", f"this issuer has no {endpoint}")


async def _require_client(context: RequestContext, order: Order) -> None:
    client_id = order.client_id
    if client_id is not None and await context.provider.registry_cache.client(client_id, context.now) is None:
        raise InvalidOrder("client_id", "is not an enabled client of this issuer")


async def _rotate(context: RequestContext, *, withdraw: bool) -> None:
    """Make a new key that signs at once."""
    provider, now = context.provider, context.now
    before = (await provider.signing_keys.keys_at(now)).ring.active.kid
    await signing_keys.rotate(provider.registry, _ACTOR, now=now, unknown=True)
    if withdraw:
        await signing_keys.revoke(provider.registry, _ACTOR, before, now=now)
    provider.signing_keys.drop()


def _new() -> SigningKey:
    return key_ring.open_signing_key(key_ring.generate_private_jwk(), active_from=0, retired_at=None, revoked_at=None)


class SandboxKeys:
    """Keys for `signing-key`: unknown, retired, unpublished."""

    def __init__(self) -> None:
        self._retired: SigningKey | None = None

    @cached_property
    def _unpublished(self) -> SigningKey:
        return _new()

    @cached_property
    def _stand_in(self) -> SigningKey:
        """In place of a retired key while the deployment has none."""
        return _new()

    def key(self, which: str) -> SigningKey:
        """The key of an order. Source: D66"""
        match which:
            case "retired":
                return self._retired or self._stand_in
            case "unpublished":
                return self._unpublished
        return _new()

    async def look_for_retired(self, provider: Provider, now: float) -> None:
        """Find the newest key that was taken out of the set. Source: D42"""
        ring = (await provider.signing_keys.keys_at(now)).ring
        stored = await signing_keys.stored_keys(provider.registry)
        gone = [key for key in stored if key.kid not in ring.by_kid and key.active_from <= now]
        self._retired = signing_keys.open_key(gone[-1]) if gone else None
