"""How many requests a minute one client, and one address, may send to an endpoint (D47).

A process counts by itself and tells the store once in a while: of a limit's twentieth part a time. So a
request hardly ever touches the store for this, and several processes together pass a limit by at most a
twentieth part each.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from corpid.flows import kinds
from corpid.flows.throttle import site
from corpid.protocol.errors import TooManyRequests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.ports import TransientStore

PAR: Final = "par"
TOKEN: Final = "token"
SIGN_IN: Final = "sign_in"
WINDOW_SECONDS: Final = 60
_PARTS: Final = 20
_ENTRIES: Final = 20_000
"""counters held at most: then those that are held are forgotten, and counting begins anew"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Requests a minute that one client, and one address, may send to an endpoint; 0: any number.

    A client is counted once it has proven who it is, so that nobody can use up another one's share.
    """

    per_client: int = 0
    per_address: int = 0


class Rates:
    """The limits of a deployment, and what this process has counted in this minute.

    `spare_loopback` is for developer mode: whoever tests on their own machine is not counted.
    """

    def __init__(
        self, transient: TransientStore, issuer: str, limits: Mapping[str, Rate], *, spare_loopback: bool
    ) -> None:
        self._transient = transient
        self._issuer = issuer
        self._limits = limits
        self._spare_loopback = spare_loopback
        self._counted: dict[tuple[str, ...], int] = {}
        self._exceeded: set[tuple[str, ...]] = set()
        self._window = 0

    async def address(self, endpoint: str, address: str, now: float) -> None:
        """Count a request by where it comes from. Raises TooManyRequests, StoreUnavailable. D47"""
        limit = self._limits[endpoint].per_address
        if limit and not (self._spare_loopback and _is_loopback(address)):
            await self._count(limit, ("address", endpoint, site(address)), now)

    async def client(self, endpoint: str, client_id: str, address: str, now: float) -> None:
        """Count a request by the client that has proven who it is. Raises TooManyRequests, StoreUnavailable. D47"""
        limit = self._limits[endpoint].per_client
        if limit and not (self._spare_loopback and _is_loopback(address)):
            await self._count(limit, ("client", endpoint, client_id), now)

    async def _count(self, limit: int, who: tuple[str, ...], now: float) -> None:
        self._turn(int(now // WINDOW_SECONDS))
        counted = self._counted[who] = self._counted.get(who, 0) + 1
        part = max(1, limit // _PARTS)
        known = who in self._exceeded
        if counted > limit or (not known and counted % part == 0 and await self._told(who, now) * part > limit):
            self._exceeded.add(who)
        if who in self._exceeded:
            raise TooManyRequests(
                f"too many requests by one {who[0]}: at most {limit} a minute",
                retry_after=WINDOW_SECONDS - int(now % WINDOW_SECONDS),
            )

    def _turn(self, window: int) -> None:
        if window != self._window or len(self._counted) >= _ENTRIES:
            self._counted.clear()
            self._exceeded.clear()
            self._window = window

    async def _told(self, who: tuple[str, ...], now: float) -> int:
        key = kinds.key(kinds.RATE, self._issuer, *who, str(self._window))
        async with self._transient.unit(now) as unit:
            return await unit.count(kinds.RATE.name, key, kinds.RATE.seconds)


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
