"""TLS with a certificate that may be renewed while serving (D52)."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from corpid.web.telemetry import access_log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    Stamp = tuple[int, int, int] | None

LOOK_SECONDS: Final = 60.0
"""how often the files are checked"""


class CertificateUnusable(Exception):
    """The certificate or its key cannot be used.

    The message says which file and what to do.
    """


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """A TLS context of a PEM chain and its key.

    TLS 1.3, or 1.2 with ECDHE and AES-GCM only. Raises CertificateUnusable. Source: D52
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE+AESGCM")
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except ssl.SSLError as error:
        raise CertificateUnusable(
            f"tls_certificate and tls_key cannot be used together ({error.reason}): give the certificate chain and "
            f"the key that belongs to it, both as PEM, in {certificate} and {key}"
        ) from error
    except (OSError, ValueError) as error:
        raise CertificateUnusable(
            f"tls_certificate or tls_key cannot be read ({error}): check the paths, that this user may read them, and "
            f"that the key has no password; they are {certificate} and {key}"
        ) from error
    return context


class ServerCertificate:
    """A certificate chain and its key in files.

    `context` offers to every new connection what they held last.

    Raises CertificateUnusable when it is made. D52.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files: Final = (certificate, key)
        self._seen = self._stamps()
        self.context: Final = server_context(certificate, key)
        self._newest = self.context
        self.expires_at = _expiry(certificate)
        """the first end of a certificate in the chain, epoch seconds; 0.0 if it cannot be read"""
        # Asked in every handshake, also of a caller that names no server. Changing the listener's own context
        # instead would leave half a pair in it when the files do not fit.
        self.context.sni_callback = self._offer

    def reload_changed(self) -> None:
        """Reload changed files; unusable ones are logged, and the previous pair stays."""
        stamps = self._stamps()
        if stamps == self._seen:
            return
        self._seen = stamps
        try:
            self._newest = server_context(*self._files)
        except CertificateUnusable as error:
            access_log.log().error("certificate_not_renewed", detail=str(error))
        else:
            self.expires_at = _expiry(self._files[0])
            access_log.log().info("certificate_renewed", detail=str(self._files[0]))

    def _offer(self, connection: ssl.SSLObject, _name: str, _context: ssl.SSLContext) -> None:
        connection.context = self._newest

    def _stamps(self) -> list[Stamp]:
        return [_stamp(file) for file in self._files]


@asynccontextmanager
async def open_certificate(certificate: Path, key: Path) -> AsyncIterator[ServerCertificate]:
    """A certificate that follows its files.

    They are checked once a minute until the context ends. Raises CertificateUnusable. Source: D52
    """
    found = ServerCertificate(certificate, key)

    async def look() -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            found.reload_changed()

    looking = asyncio.create_task(look())
    try:
        yield found
    finally:
        looking.cancel()


def _stamp(file: Path) -> Stamp:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _expiry(certificate: Path) -> float:
    from cryptography import x509  # noqa: PLC0415 - most providers have a proxy in front that ends TLS

    try:
        chain = x509.load_pem_x509_certificates(certificate.read_bytes())
    except (OSError, ValueError):  # exchanged again since OpenSSL read it
        return 0.0
    return min(each.not_valid_after_utc for each in chain).timestamp()


def _no_password() -> str:
    """Instead of OpenSSL's own question on the terminal."""
    raise ValueError("the key is protected by a password")
