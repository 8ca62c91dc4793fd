"""TLS for developers: a certificate, from an authority of its own.

Programs and browsers of this machine are told once to trust the authority: it certifies new keys when a certificate
nears its end. It can certify the hosts of this provider alone (RFC 5280 §4.2.1.10). Phones need not heed that of an
authority that they trust, so one for other machines certifies once, and its private key is never stored.
"""

from __future__ import annotations

import fcntl
import os
import ssl
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Final, TypeAlias

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from corpid.stores import private_files
from corpid.web.http.server import CertificateUnusable, server_context

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Names: TypeAlias = "Sequence[x509.GeneralName]"

OWN_MACHINE: Final = ("localhost", "127.0.0.1", "::1")
"""the hosts by which a machine reaches itself"""
LIFETIME: Final = timedelta(days=90)
AUTHORITY_LIFETIME: Final = timedelta(days=3650)
_LEFT: Final = timedelta(days=7)
"""an older one is replaced at a start, so that it does not end soon after"""
_CLOCKS_APART: Final = timedelta(days=1)
_NO_USE: Final = dict.fromkeys(
    (
        "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
        "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
    ),
    False,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCertificate:
    """A certificate and its authority, in files."""

    chain: Path
    key: Path
    authority: Path
    """the authority's certificate alone, to be installed where it shall be trusted"""
    fingerprint: str
    """SHA-256 of the certificate, as browsers show it"""
    ends: datetime
    authority_ends: datetime

    def server_context(self) -> ssl.SSLContext:
        """The TLS of a server. Raises CertificateUnusable."""
        return server_context(self.chain, self.key)

    def client_context(self) -> ssl.SSLContext:
        """The TLS of a client that trusts this authority, and no other."""
        return ssl.create_default_context(cafile=str(self.authority))


def keep_certificate(folder: Path, *hosts: str, now: datetime, renewable: bool = True) -> OwnCertificate:
    """The certificate for these hosts in a folder.

    A new one if there is none, it is for others, it cannot be used or it ends within a week. The authority is new only
    if the kept one cannot certify it; it never can unless it is `renewable`. Raises CertificateUnusable.
    """
    names = [_general_name(host) for host in dict.fromkeys(hosts)]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(folder):
            authority = _kept_authority(folder, names)
            kept = authority and _kept(folder, authority, names, now)
            if kept:
                return kept
            key = None if authority is None else _kept_key(folder, authority, now)
            if authority is None or key is None:
                authority, key = _new_authority(folder, hosts[0], names, now, renewable=renewable)
            return _new(folder, authority, key, names, now)
    except OSError as error:
        raise CertificateUnusable(f"no certificate can be kept in {folder}: {error.strerror}") from None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two processes that start at once get the same files."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _kept_authority(folder: Path, names: Names) -> x509.Certificate | None:
    try:
        certificate = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
        constraints = certificate.extensions.get_extension_for_class(x509.NameConstraints).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return None
    return certificate if constraints == _constraints(names) else None


def _kept_key(folder: Path, authority: x509.Certificate, now: datetime) -> ec.EllipticCurvePrivateKey | None:
    """The authority's key, None if it can certify nothing more."""
    try:
        key = load_pem_private_key((folder / "ca.key").read_bytes(), None)
    except (OSError, ValueError, TypeError):
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not _is_valid(authority, now, left=LIFETIME):
        return None
    return key if key.public_key() == authority.public_key() else None


def _kept(folder: Path, authority: x509.Certificate, names: Names, now: datetime) -> OwnCertificate | None:
    chain, key = _files(folder)
    try:
        certificate, above = x509.load_pem_x509_certificates(chain.read_bytes())
        certificate.verify_directly_issued_by(authority)
        certified = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        server_context(chain, key)
    except (OSError, ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound, CertificateUnusable):
        return None
    fits = list(certified) == names and above == authority and _is_valid(certificate, now, left=_LEFT)
    return _described(folder, certificate, authority) if fits else None


def _new_authority(
    folder: Path, host: str, names: Names, now: datetime, *, renewable: bool
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"CorpID for developers on {host}, {now:%Y-%m-%d}"[:64])
    certificate = _signed(
        name, name, key, key, now, AUTHORITY_LIFETIME if renewable else LIFETIME,
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (x509.KeyUsage(**{**_NO_USE, "key_cert_sign": True}), True),
        (_constraints(names), True),
    )  # fmt: skip
    if renewable:
        private_files.replace(folder / "ca.key", _pem(key))
    private_files.replace(folder / "ca.crt", certificate.public_bytes(Encoding.PEM))
    return certificate, key


def _new(
    folder: Path, authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey, names: Names, now: datetime
) -> OwnCertificate:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _signed(
        authority.subject, _name("CorpID for developers"), authority_key, key, now, LIFETIME,
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (x509.KeyUsage(**{**_NO_USE, "digital_signature": True}), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (x509.SubjectAlternativeName(names), False),
    )  # fmt: skip
    chain, key_file = _files(folder)
    pem = [each.public_bytes(Encoding.PEM) for each in (certificate, authority)]
    private_files.replace(chain, b"".join(pem))
    private_files.replace(key_file, _pem(key))
    return _described(folder, certificate, authority)


def _constraints(names: Names) -> x509.NameConstraints:
    """These names and no others.

    A form of names that is not permitted has to be excluded: what constraints do not mention is allowed.
    """
    permitted = [x509.IPAddress(ip_network(each.value)) if isinstance(each, x509.IPAddress) else each for each in names]
    excluded: list[x509.GeneralName] = []
    if not any(isinstance(each, x509.DNSName) for each in permitted):
        excluded.append(x509.DNSName(""))
    if not any(isinstance(each, x509.IPAddress) for each in permitted):
        excluded += [x509.IPAddress(ip_network("0.0.0.0/0")), x509.IPAddress(ip_network("::/0"))]
    return x509.NameConstraints(permitted_subtrees=permitted, excluded_subtrees=excluded or None)


def _signed(
    issuer: x509.Name,
    subject: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    lifetime: timedelta,
    *extensions: tuple[x509.ExtensionType, bool],
) -> x509.Certificate:
    builder = x509.CertificateBuilder(issuer_name=issuer, subject_name=subject, public_key=key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - _CLOCKS_APART).not_valid_after(now + lifetime)
    of_issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    identifiers = ((x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False), (of_issuer, False))
    for extension, critical in (*extensions, *identifiers):
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(issuer_key, hashes.SHA256())


def _is_valid(certificate: x509.Certificate, now: datetime, *, left: timedelta) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - left


def _described(folder: Path, certificate: x509.Certificate, authority: x509.Certificate) -> OwnCertificate:
    chain, key = _files(folder)
    return OwnCertificate(
        chain=chain,
        key=key,
        authority=folder / "ca.crt",
        fingerprint=certificate.fingerprint(hashes.SHA256()).hex(":").upper(),
        ends=certificate.not_valid_after_utc,
        authority_ends=authority.not_valid_after_utc,
    )


def _files(folder: Path) -> tuple[Path, Path]:
    return folder / "certificate.pem", folder / "key.pem"


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
