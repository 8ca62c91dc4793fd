"""Callers of requests: their device, and the networks of their address (D47).

By the device nothing is decided, since a User-Agent can be forged.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from types import MappingProxyType
from typing import Final, TypeAlias

_CHARACTERS: Final = 512
_BROWSERS: Final = (
    (re.compile(r"\bEdg(?:e|A|iOS)?/"), "Edge"),
    (re.compile(r"\bOPR/|\bOpera\b"), "Opera"),
    (re.compile(r"\bSamsungBrowser/"), "Samsung Internet"),
    (re.compile(r"\b(?:Firefox|FxiOS)/"), "Firefox"),
    (re.compile(r"\b(?:Chrome|CriOS|Chromium|HeadlessChrome)/"), "Chrome"),
    (re.compile(r"\bVersion/\S+ .*\bSafari/"), "Safari"),
)
_SYSTEMS: Final = (
    (re.compile(r"\biPhone\b|\biPod\b"), "iPhone"),
    (re.compile(r"\biPad\b"), "iPad"),
    (re.compile(r"\bAndroid\b"), "Android"),
    (re.compile(r"\bWindows\b"), "Windows"),
    (re.compile(r"\bCrOS\b"), "ChromeOS"),
    (re.compile(r"\bMac OS X\b|\bMacintosh\b"), "macOS"),
    (re.compile(r"\bLinux\b"), "Linux"),
)
"""the first match counts, since browsers also name those that they resemble"""


def device(user_agent: str) -> str:
    """Return browser and system: `Firefox on Windows`, `Firefox`, `Windows`, or empty.

    Only names from the tables of this module are returned. Source: RFC 9110 §10.1.5
    """
    return _named(user_agent[:_CHARACTERS])


@lru_cache(maxsize=1024)
def _named(user_agent: str) -> str:
    found = [next((name for seen, name in each if seen.search(user_agent)), "") for each in (_BROWSERS, _SYSTEMS)]
    return " on ".join(name for name in found if name)


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
