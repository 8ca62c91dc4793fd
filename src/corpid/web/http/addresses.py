"""The caller's address (D47) and the requested host (D35)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from corpid.rules.networks import Network, is_loopback
from corpid.rules.oauth.urls import DEFAULT_PORTS

HEALTH_PATHS: Final = ("/healthz", "/readyz")
"""answered under every name, whatever base_url is"""
HOPS: Final = 32
"""forwarding entries to read, from the right"""
REMEMBERED: Final = 4096
HOST_CHARACTERS: Final = 261
"""a name of 255, a colon and a port; more is not remembered either"""


class ForwardingHeader(StrEnum):
    """Headers in which a proxy can name the caller."""

    X_FORWARDED_FOR = "X-Forwarded-For"
    FORWARDED = "Forwarded"
    """RFC 7239"""


class ClientAddresses:
    """Finds the address of the caller behind the declared proxies."""

    def __init__(self, trusted_proxies: Sequence[Network] = (), header: str = ForwardingHeader.X_FORWARDED_FOR) -> None:
        """`header` is the one that the proxies set.

        The other one may be a caller's own.
        """
        self._header = header.lower().encode()
        self._networks = tuple(trusted_proxies)
        self._is_trusted = lru_cache(REMEMBERED)(self._lies_in_networks)

    def caller_address(self, peer: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """The address that limits and logs go by.

        `peer` is the connection's other end, empty if it has none.

        Only a trusted peer's header counts, and there the right-most address that is not itself a trusted proxy:
        anything left of it was written by the caller. D47.
        """
        if not self.trusts(peer):
            return peer
        value = ",".join(value.decode("latin-1") for name, value in headers if name == self._header)
        return self._nearest(_hops(value), peer) if value else peer

    def trusts(self, peer: str) -> bool:
        """Return whether the connection's other end is a declared proxy (D47)."""
        return bool(self._networks) and self._is_trusted(peer)

    def _nearest(self, hops: Iterable[str], peer: str) -> str:
        nearest = peer
        for hop in hops:
            address = _address(hop)
            if address is None:
                return nearest
            nearest = str(address)
            if not self._is_trusted(nearest):
                return nearest
        return nearest

    def _lies_in_networks(self, text: str) -> bool:
        address = _address(text)
        return address is not None and any(address in network for network in self._networks)


_BY_A_PROXY: Final = (
    b"x-forwarded",
    b"x-original",
    b"x-real-ip",
    b"forwarded",
    b"via",
    b"cf-connecting-ip",
    b"true-client-ip",
)
"""beginnings of headers by which a proxy or a tunnel shows that the caller may be elsewhere"""


def is_from_this_machine(peer: tuple[str, int] | None, headers: Iterable[bytes]) -> bool:
    """Return whether a connection is from a loopback address, and no proxy's.

    `headers` are names in lower case. A header can only make it False. Source: D66
    """
    return peer is not None and is_loopback(peer[0]) and not any(name.startswith(_BY_A_PROXY) for name in headers)


class Hosts:
    """The host names that this deployment answers to (D35)."""

    def __init__(self, base_url: str, allowed_hosts: Iterable[str] = (), *, further_urls: Iterable[str] = ()) -> None:
        """`base_url` is the issuer, `further_urls` those of the others.

        An allowed host is `name` (with any port) or `name:port`.
        """
        parts = urlsplit(base_url)
        issuers = (parts.netloc, *(urlsplit(url).netloc for url in further_urls))
        self._default_port = str(DEFAULT_PORTS.get(parts.scheme, ""))
        self._allowed = frozenset(self._normal(host) for host in (*issuers, *allowed_hosts))
        self._any_port = frozenset(host.lower() for host in allowed_hosts if not _port(host))
        self._is_allowed = lru_cache(REMEMBERED)(self._lies_in_names)

    def allows(self, host: bytes) -> bool:
        """Return whether this Host header names base_url's host or an allowed one.

        Source: D35
        """
        return len(host) <= HOST_CHARACTERS and self._is_allowed(host)

    def _lies_in_names(self, host: bytes) -> bool:
        text = host.decode("latin-1").lower()
        return self._normal(text) in self._allowed or text.removesuffix(f":{_port(text)}") in self._any_port

    def _normal(self, host: str) -> str:
        return host.lower().removesuffix(f":{self._default_port}")


class OwnHosts:
    """Allowed Host headers of another address, such as the metrics'.

    A page of another site can make a browser connect to it under a name of that site's own (DNS rebinding).
    """

    def __init__(self, address: str = "", allowed_hosts: Iterable[str] = ()) -> None:
        """`address` is HOST:PORT as it was configured.

        Empty: only what was connected to counts.
        """
        host, _, port = address.rpartition(":")
        self._named = Hosts(f"http://{bracket_host(host)}:{port}", allowed_hosts) if address else None

    def allows(self, host: bytes, reached: tuple[str, int | None] | None) -> bool:
        """Return whether a Host header may name this address.

        The configured one, the one connected to, or an allowed host. Source: D35
        """
        if self._named is not None and self._named.allows(host):
            return True
        return reached is not None and host.decode("latin-1").lower() in _written(*reached)


def _written(address: str, port: int | None) -> set[str]:
    """The accepted spellings of the address that callers connect to."""
    names = {bracket_host(address)}
    if is_loopback(address):
        names.add("localhost")
    default = DEFAULT_PORTS["http"]
    return {f"{name}:{port}" for name in names} | (names if port == default else set())


def bracket_host(host: str) -> str:
    """A host as it is written before a port."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return port if (colon and not name.startswith("[")) or name.endswith("]") else ""


def _hops(value: str) -> list[str]:
    """The entries of a forwarding header, the nearest proxy's first."""
    entries = value.rsplit(",", HOPS)[-HOPS:]
    return [_forwarded_for(entry.strip()) for entry in reversed(entries)]


def _forwarded_for(entry: str) -> str:
    """The address of a plain or Forwarded entry (RFC 7239 §4)."""
    if "=" not in entry:
        return entry
    for pair in entry.split(";"):
        name, _, value = pair.partition("=")
        if name.strip().lower() == "for":
            return value.strip().strip('"')
    return ""


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """An address with or without port and brackets.

    None for `unknown`, obfuscated and broken ones.
    """
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
