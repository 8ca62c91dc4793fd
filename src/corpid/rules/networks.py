"""The networks that an address belongs to (D47)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from types import MappingProxyType
from typing import Final, TypeAlias

Network: TypeAlias = IPv4Network | IPv6Network

_IPV6_SITE: Final = 64
_NEIGHBOURHOOD: Final[Mapping[int, int]] = MappingProxyType({4: 24, 6: 48})
"""by the version of the address: how much one organisation is commonly given to choose from"""


@lru_cache(maxsize=4096)
def site(address: str) -> str:
    """The network of one customer: an IPv4 address, or an IPv6 prefix.

    Source: D47
    """
    parsed = _parsed(address)
    if parsed is None:
        return address
    return str(parsed) if parsed.version == 4 else str(ipaddress.ip_network((parsed, _IPV6_SITE), strict=False))


@lru_cache(maxsize=4096)
def neighbourhood(address: str) -> str:
    """The network around an address that one organisation commonly has. Source: D47"""
    parsed = _parsed(address)
    if parsed is None:
        return address
    return str(ipaddress.ip_network((parsed, _NEIGHBOURHOOD[parsed.version]), strict=False))


def lies_in(address: str, networks: Iterable[Network]) -> bool:
    """Return whether an address belongs to one of these networks.

    Nothing belongs to none of them, and a malformed address to none at all. Source: D47
    """
    parsed = _parsed(address)
    return parsed is not None and any(parsed in network for network in networks)


def is_loopback(address: str) -> bool:
    """Return whether an address is this machine's own. Source: D27"""
    parsed = _parsed(address)
    return parsed is not None and parsed.is_loopback


def _parsed(address: str) -> IPv4Address | IPv6Address | None:
    """The parsed address, None if it is malformed.

    An IPv6 address that stands for an IPv4 address becomes that.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return None
    return (parsed.ipv4_mapped or parsed) if parsed.version == 6 else parsed
