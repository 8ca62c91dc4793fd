"""The host of a demo: this machine alone, or its network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import httpx

from corpid import own_certificates

if TYPE_CHECKING:
    import ssl
    from datetime import datetime
    from pathlib import Path

    from corpid.own_certificates import OwnCertificate
    from corpid_dev.network_host import NetworkHost

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
