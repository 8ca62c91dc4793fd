"""The host of a demo: this machine alone, or its network.

The host of a demo on the network (`corpid demo --host`).
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Final

import httpx

from corpid import own_certificates

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from corpid.own_certificates import OwnCertificate

PROVIDER_HOST: Final = "localhost"  # passkeys refuse an address (D34)
RELYING_PARTY_HOST: Final = "127.0.0.1"  # another host name, since ports do not separate cookies (D34)
FIRST_PORT: Final = 8400
TLS: Final = "tls"
"""in the data directory: the certificates; that of this machine alone is in a folder of its own there"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosting:
    """The host of a demo, and its certificate.

    On the network it always has one.
    """

    network: NetworkHost | None = None
    """None: this machine alone reaches it"""
    certificate: OwnCertificate | None = None
    """None: plain HTTP"""

    @classmethod
    def prepare(cls, network: NetworkHost | None, data_directory: Path, *, tls: bool, now: datetime) -> Hosting:
        """The hosting of a demo, whose certificate is made if needed.

        Raises CertificateUnusable.
        """
        folder = data_directory / TLS
        if network is not None:
            once = own_certificates.keep_certificate(folder, network.host, now=now, renewable=False)
            return cls(network=network, certificate=once)
        if not tls:
            return cls()
        return cls(
            certificate=own_certificates.keep_certificate(
                folder / PROVIDER_HOST, *own_certificates.OWN_MACHINE, now=now
            )
        )

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses to listen on, none if this machine alone reaches it."""
        return self.network.addresses if self.network else ()

    def url(self, own_host: str, port: int) -> str:
        """A URL without a path; `own_host` is for this machine alone."""
        scheme = "https" if self.certificate else "http"
        return f"{scheme}://{self.network.in_url if self.network else own_host}:{port}"

    def server_context(self) -> ssl.SSLContext | None:
        """The TLS of the servers, None for plain HTTP."""
        return self.certificate.server_context() if self.certificate else None

    def http(self, seconds: float) -> httpx.AsyncClient:
        """A client that trusts the certificate; `seconds` is its timeout."""
        verify = self.certificate.client_context() if self.certificate else True
        return httpx.AsyncClient(timeout=seconds, trust_env=False, verify=verify)


AUTO: Final = "auto"
_ELSEWHERE: Final = (("203.0.113.1", socket.AF_INET), ("2001:db8::1", socket.AF_INET6))
"""addresses for documentation (RFC 5737, RFC 3849): the system chooses a route to them, and nothing is sent"""
_NAME: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")


class HostUnusable(Exception):
    """A host that other machines cannot reach.

    The message says what to give.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkHost:
    """A name or address, and the addresses to listen on."""

    host: str
    addresses: tuple[str, ...]

    @property
    def is_name(self) -> bool:
        """True for a name, which passkeys need (D34)."""
        return _address(self.host) is None

    @property
    def in_url(self) -> str:
        """The host as URLs write it (RFC 3986 §3.2.2)."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def reached_at(self) -> str:
        """The address at which other machines reach it."""
        return next(each for each in self.addresses if not ip_address(each).is_loopback)


def find(wanted: str) -> NetworkHost:
    """The host that a person names, or with `auto` this machine's own.

    Raises HostUnusable.
    """
    host = wanted.strip().lower().removesuffix(".")
    if host == AUTO:
        address = own_address()
        if address is None:
            raise HostUnusable("this machine has no address on a network: connect it, or give its address to --host")
        return NetworkHost(host=address, addresses=(address,))
    named = _address(host.removeprefix("[").removesuffix("]"))
    if isinstance(named, IPv6Address):
        named = named.ipv4_mapped or named
    if named is None:
        return _by_name(host)
    if named.is_loopback:
        raise HostUnusable(_own_machine_alone(named))
    if not _is_reachable(named):
        raise HostUnusable(f"other machines do not reach {named}: {_instead()}")
    if not _is_own(str(named)):
        raise HostUnusable(f"{named} is not an address of this machine: {_instead()}")
    return NetworkHost(host=str(named), addresses=(str(named),))


def own_address() -> str | None:
    """The address of this machine on its network, None without one.

    It is that of the route to the rest of the world.
    """
    for elsewhere, family in _ELSEWHERE:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((elsewhere, 9))
                found = _address(probe.getsockname()[0])
        except OSError:
            continue
        if found is not None and _is_reachable(found):
            return str(found)
    return None


def _by_name(host: str) -> NetworkHost:
    if host == "localhost" or host.endswith(".localhost"):
        raise HostUnusable(_own_machine_alone(host))
    if not _NAME.fullmatch(host):
        raise HostUnusable(f"this is neither a host name nor an address (no scheme, no port): {_instead()}")
    try:
        found = tuple(dict.fromkeys(_resolved(host)))
    except OSError as error:
        raise HostUnusable(f"this machine cannot resolve that name ({error.strerror}): {_instead()}") from None
    own = tuple(each for each in found if _is_own(each))
    if not own:
        raise HostUnusable(f"the name resolves to {', '.join(found)}, not to this machine: {_instead()}")
    if all(ip_address(each).is_loopback for each in own):
        # Debian writes a machine's own name into /etc/hosts with a loopback address; others find it on the network.
        address = own_address()
        if address is None:
            raise HostUnusable("this machine has no address on a network: connect it")
        own = (*own, address)
    return NetworkHost(host=host, addresses=own)


def _resolved(host: str) -> Iterator[str]:
    for *_, address in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
        found = _address(str(address[0]))
        if found is not None and not found.is_link_local:
            yield str(found)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _is_reachable(address: IPv4Address | IPv6Address) -> bool:
    return not (address.is_loopback or address.is_unspecified or address.is_multicast or address.is_link_local)


def _is_own(address: str) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def _own_machine_alone(host: object) -> str:
    return (
        f"only this machine reaches {host}. For https there, give --tls and no --host; for other machines, {_instead()}"
    )


def _instead() -> str:
    address = own_address()
    return (
        f"give --host {address}, or another name or address of this machine" if address else "connect it to a network"
    )
