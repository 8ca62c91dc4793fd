"""CorpID's own TLS (D52)."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class CertificateUnusable(Exception):
    """The certificate or its key cannot be used; the message says which file and what to do."""


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS 1.3, or 1.2 with ECDHE and AES-GCM only, from a PEM chain and its PEM key.

    Raises CertificateUnusable. D52.
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
            f"tls_certificate {certificate} and tls_key {key} cannot be used together ({error.reason}): "
            "give the certificate chain and the key that belongs to it, both as PEM"
        ) from error
    except (OSError, ValueError) as error:
        raise CertificateUnusable(
            f"tls_certificate {certificate} or tls_key {key} cannot be read: {error}; "
            "check the paths, that this user may read them, and that the key has no password"
        ) from error
    return context


def _no_password() -> str:
    """Instead of OpenSSL's own question on the terminal."""
    raise ValueError("the key is protected by a password")
