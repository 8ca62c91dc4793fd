"""The host of a demo: this machine alone, or its network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import httpx

from corpid.sandbox import certificates

if TYPE_CHECKING:
    import ssl
    from datetime import datetime
    from pathlib import Path

    from corpid.sandbox.certificates import DemoCertificate
    from corpid.sandbox.network_host import NetworkHost

PROVIDER_HOST: Final = "localhost"  # passkeys refuse an address (D34)
RELYING_PARTY_HOST: Final = "127.0.0.1"  # another host name, since ports do not separate cookies (D34)
FIRST_PORT: Final = 8400
TLS: Final = "tls"
"""in the data directory: the certificate, if other machines reach the demo"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosting:
    """The host of a demo; on the network, with a certificate."""

    network: NetworkHost | None = None
    """None: this machine alone reaches it"""
    certificate: DemoCertificate | None = None

    @classmethod
    def of(cls, network: NetworkHost | None, data_directory: Path, *, now: datetime) -> Hosting:
        """The hosting of a demo, whose certificate is made if needed."""
        if network is None:
            return cls()
        return cls(network=network, certificate=certificates.kept_in(data_directory / TLS, network.host, now=now))

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses to listen on, none if this machine alone reaches it."""
        return self.network.addresses if self.network else ()

    def url(self, own_host: str, port: int) -> str:
        """A URL without a path; `own_host` is for this machine alone."""
        return f"https://{self.network.in_url}:{port}" if self.network else f"http://{own_host}:{port}"

    def server_context(self) -> ssl.SSLContext | None:
        """The TLS of the servers, None for plain HTTP."""
        return self.certificate.server_context() if self.certificate else None

    def http(self, seconds: float) -> httpx.AsyncClient:
        """A client that trusts the certificate; `seconds` is its timeout."""
        verify = self.certificate.client_context() if self.certificate else True
        return httpx.AsyncClient(timeout=seconds, trust_env=False, verify=verify)
