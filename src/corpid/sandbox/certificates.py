"""The TLS certificate of a demo on the network (`corpid demo --host`).

A certification authority of its own certifies one key for one host. The authority's private key is never stored: a
phone that trusts the authority trusts this one certificate, and nobody can make another.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from corpid.stores import private_files
from corpid.web.http.tls import CertificateUnusable, server_context

if TYPE_CHECKING:
    from pathlib import Path

LIFETIME: Final = timedelta(days=90)
_LEFT: Final = timedelta(days=7)
"""an older one is replaced at the start of a demo, so that it does not end during it"""
_CLOCKS_APART: Final = timedelta(days=1)
_NO_USE: Final = dict.fromkeys(
    (
        "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
        "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
    ),
    False,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCertificate:
    """A certificate for one host, in files."""

    chain: Path
    key: Path
    authority: Path
    """the authority's certificate alone, to be installed where it shall be trusted"""
    fingerprint: str
    """SHA-256 of the certificate, as browsers show it"""
    ends: datetime

    def server_context(self) -> ssl.SSLContext:
        """The TLS of a server. Raises CertificateUnusable."""
        return server_context(self.chain, self.key)

    def client_context(self) -> ssl.SSLContext:
        """The TLS of a client that trusts this authority, and no other."""
        return ssl.create_default_context(cafile=str(self.authority))


def kept_in(folder: Path, host: str, *, now: datetime) -> DemoCertificate:
    """The certificate for a host in a folder.

    A new one if there is none, it is another host's, it cannot be used or it ends within a week.
    """
    return _usable(folder, host, now) or _made(folder, host, now)


def _usable(folder: Path, host: str, now: datetime) -> DemoCertificate | None:
    found = _files(folder)
    try:
        certificate = x509.load_pem_x509_certificate(found["chain"].read_bytes())
        authority = x509.load_pem_x509_certificate(found["authority"].read_bytes())
        certificate.verify_directly_issued_by(authority)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        server_context(found["chain"], found["key"])
    except (OSError, ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound, CertificateUnusable):
        return None
    valid = certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - _LEFT
    return _described(found, certificate) if valid and list(names) == [_general_name(host)] else None


def _made(folder: Path, host: str, now: datetime) -> DemoCertificate:
    folder.mkdir(mode=0o700, exist_ok=True)
    files = _files(folder)
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = _name(f"CorpID demo on {host}, {now:%Y-%m-%d}"[:64])
    authority = _signed(
        issuer, issuer, authority_key, authority_key, now,
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (x509.KeyUsage(**{**_NO_USE, "key_cert_sign": True}), True),
    )  # fmt: skip
    certificate = _signed(
        issuer, _name("CorpID demo"), authority_key, key, now,
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (x509.KeyUsage(**{**_NO_USE, "digital_signature": True}), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (x509.SubjectAlternativeName([_general_name(host)]), False),
    )  # fmt: skip
    trusted = authority.public_bytes(Encoding.PEM)
    private_files.replace(files["authority"], trusted)
    private_files.replace(files["chain"], certificate.public_bytes(Encoding.PEM) + trusted)
    private_files.replace(files["key"], key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return _described(files, certificate)


def _signed(
    issuer: x509.Name,
    subject: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    *extensions: tuple[x509.ExtensionType, bool],
) -> x509.Certificate:
    builder = x509.CertificateBuilder(issuer_name=issuer, subject_name=subject, public_key=key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - _CLOCKS_APART).not_valid_after(now + LIFETIME)
    of_issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    identifiers = ((x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False), (of_issuer, False))
    for extension, critical in (*extensions, *identifiers):
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(issuer_key, hashes.SHA256())


def _described(files: dict[str, Path], certificate: x509.Certificate) -> DemoCertificate:
    fingerprint = certificate.fingerprint(hashes.SHA256()).hex(":").upper()
    return DemoCertificate(**files, fingerprint=fingerprint, ends=certificate.not_valid_after_utc)


def _files(folder: Path) -> dict[str, Path]:
    return {"chain": folder / "certificate.pem", "key": folder / "key.pem", "authority": folder / "ca.crt"}


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
