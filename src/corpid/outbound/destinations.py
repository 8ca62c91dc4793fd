"""Allowed destinations of outgoing HTTP (D27)."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

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


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressRules:
    """Allowed destinations of fetches."""

    schemes: tuple[str, ...]
    ports: tuple[int, ...]
    """empty: any"""
    names_only: bool
    """a host is a name, never an address"""
    own_ports: bool
    """our own host name may be fetched from at another port than our own"""
    permits: Callable[[Address], bool]


INTERNET: Final = EgressRules(schemes=("https",), ports=(443,), names_only=True, own_ports=False, permits=is_public)
DEVELOPER: Final = EgressRules(
    schemes=("https", "http"), ports=(), names_only=False, own_ports=True, permits=lambda _: True
)  # fmt: skip
