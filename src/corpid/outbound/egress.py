"""Destinations of outgoing HTTP, and the client that is loaded for the first of them (D27).

Many providers fetch nothing: their clients' keys are registered inline.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TYPE_CHECKING, Final, TypeAlias

from corpid.flows.event_log import log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corpid.outbound.http_client import HttpClient

    Address: TypeAlias = IPv4Address | IPv6Address

_NOT_PUBLIC_4: Final = (IPv4Network("192.0.0.0/24"), IPv4Network("192.88.99.0/24"))
_GLOBAL_6: Final = IPv6Network("2000::/3")
_NOT_PUBLIC_6: Final = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))


class HttpClientError(Exception):
    """Nothing was fetched.

    `detail` says why, for the log and the URL's owner.
    """

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


def is_public(address: Address) -> bool:
    """Return whether an address may be fetched from: a public one.

    IPv6 forms that carry an IPv4 address (mapped, NAT64, 6to4, Teredo) never are. Source: D27
    """
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast and not any(address in net for net in _NOT_PUBLIC_4)
    return address.scope_id is None and address in _GLOBAL_6 and not any(address in net for net in _NOT_PUBLIC_6)


def _any_address(_: Address) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Allowed destinations of fetches."""

    schemes: tuple[str, ...]
    ports: tuple[int, ...]
    """empty: any"""
    names_only: bool
    """a host is a name, never an address"""
    own_ports: bool
    """our own host name may be fetched from at another port than our own"""
    permits: Callable[[Address], bool]


INTERNET: Final = Rules(schemes=("https",), ports=(443,), names_only=True, own_ports=False, permits=is_public)
DEVELOPER: Final = Rules(
    schemes=("https", "http"), ports=(), names_only=False, own_ports=True, permits=_any_address
)  # fmt: skip


class Egress:
    """Fetches over the open internet, by an `HttpClient` that is made when it is needed.

    httpx and the trusted authorities take long to load.
    """

    def __init__(self, *, own_url: str, further_urls: Sequence[str] = (), rules: Rules = INTERNET) -> None:
        self._own_url = own_url
        self._further_urls = further_urls
        self._rules = rules
        self._making = asyncio.Lock()
        self._client: HttpClient | None = None
        if rules is not INTERNET:
            log().warning(
                "egress_rules_lifted", detail=f"key sets are fetched by {', '.join(rules.schemes)} from any address"
            )

    async def load(self) -> HttpClient:
        """The client, made in a thread if there is none yet."""
        async with self._making:
            if self._client is None:
                self._client = await asyncio.to_thread(self._made)
        return self._client

    async def fetch(self, url: str) -> bytes:
        """The body of the 200 response at `url`.

        Raises HttpClientError. Source: D27
        """
        client = self._client or await self.load()
        return await client.fetch(url)

    def _made(self) -> HttpClient:
        from corpid.outbound.http_client import HttpClient  # noqa: PLC0415 - see above

        return HttpClient(own_url=self._own_url, further_urls=self._further_urls, rules=self._rules)
