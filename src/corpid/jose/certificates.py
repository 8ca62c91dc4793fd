"""Certificates of the provider's signing keys: self-signed, or an operator's chain.

A relying party of an older generation reads them in the key set (x5c, x5t, x5t#S256). The signature vouches
for nothing more than the key does: who trusts the key set trusts the key.
"""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import MAXYEAR, UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from corpid.jose.encoding import JoseError, base64url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.hazmat.primitives.asymmetric import ec

_LIFETIME: Final = timedelta(days=3652)
"""ten years"""
_SERIAL_BYTES: Final = 16
MAX_CHARACTERS: Final = 65536
"""of a PEM text"""
MAX_CERTIFICATES: Final = 8
_BEGIN: Final = "-----BEGIN "
_END: Final = "-----END CERTIFICATE-----"
_LABEL: Final = re.compile(r"[A-Z0-9 ]{1,40}")
_USES: Final = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip


class CertificateRefused(JoseError):
    """Not a certificate chain or subject of this key.

    The text says what is wrong.
    """


def certificate_end(encoded: str) -> int | None:
    """The last moment of a certificate of x5c, epoch seconds.

    None if it cannot be read, or has no well-defined end, which the year 9999 says. Source: RFC 7517 §4.7, RFC 5280
    §4.1.2.5
    """
    try:
        end = x509.load_der_x509_certificate(base64.b64decode(encoded)).not_valid_after_utc
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return int(end.timestamp()) if end.year < MAXYEAR else None


def self_signed(private: ec.EllipticCurvePrivateKey, *, kid: str, created_at: int) -> x509.Certificate:
    """The default certificate of a key, valid for ten years.

    `created_at` is in epoch seconds. The same bytes in every process and after every restart: nothing in it is drawn at
    random, the signature included (RFC 6979). Source: RFC 5280 §4.1, Spec 2.9
    """
    name = _name(f"CorpID {kid}")
    begin = datetime.fromtimestamp(created_at, UTC)
    serial = int.from_bytes(hashlib.sha256(kid.encode()).digest()[:_SERIAL_BYTES]) | 1
    builder = x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=private.public_key())
    builder = builder.serial_number(serial).not_valid_before(begin).not_valid_after(begin + _LIFETIME)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_signing_only(), critical=True)
    return builder.sign(private, hashes.SHA256(), ecdsa_deterministic=True)


def signing_request(private: ec.EllipticCurvePrivateKey, *, subject_name: str) -> str:
    """A certificate signing request (PEM) for the key and name.

    Raises CertificateRefused for a name that no certificate can contain. Source: RFC 2986 §4
    """
    builder = x509.CertificateSigningRequestBuilder(subject_name=_name(subject_name))
    builder = builder.add_extension(_signing_only(), critical=True)
    return builder.sign(private, hashes.SHA256(), ecdsa_deterministic=True).public_bytes(Encoding.PEM).decode()


def parse_chain(text: str) -> tuple[x509.Certificate, ...]:
    """The certificates of a PEM text, in their order.

    Text between the blocks is ignored.

    Raises CertificateRefused for a text without a certificate, with something else in it, with more than 8
    certificates or 64 KiB, or with a certificate that cannot be read. Source: RFC 7468 §5
    """
    if len(text) > MAX_CHARACTERS:
        raise CertificateRefused(f"it is longer than {MAX_CHARACTERS // 1024} KiB, which no chain needs")
    _, *blocks = text.split(_BEGIN, MAX_CERTIFICATES + 1)
    if not blocks:
        raise CertificateRefused("no certificate in PEM form is in it: one begins with -----BEGIN CERTIFICATE-----")
    bodies = [_body(block) for block in blocks]
    if len(bodies) > MAX_CERTIFICATES:
        raise CertificateRefused(f"it holds more than {MAX_CERTIFICATES} certificates")
    return tuple(_certificate(body, number) for number, body in enumerate(bodies, start=1))


def chain_of(
    private: ec.EllipticCurvePrivateKey, *, kid: str, created_at: int, stored: str | None
) -> tuple[x509.Certificate, ...]:
    """The certificates of a key, its own first.

    The operator's `stored` chain, or else the one that the key signs itself. Raises CertificateRefused if the stored
    text is not what was checked. Source: Spec 2.9
    """
    return (self_signed(private, kid=kid, created_at=created_at),) if stored is None else parse_chain(stored)


def check_chain(chain: Sequence[x509.Certificate], public: ec.EllipticCurvePublicKey, *, now: float) -> None:
    """Verify a certificate chain: key, issuers and validity.

    The first certificate is this key's, each next one has issued the one before, and all are valid at `now`. The first
    is no certificate authority's, the others are, and none comes twice. Raises CertificateRefused. Whether anybody
    trusts the last issuer is not asked. Source: RFC 7517 §4.7, RFC 5280 §4.2.1.9
    """
    if not _certifies(chain[0], public):
        raise CertificateRefused(
            "the first certificate is not of this key: the key's own comes first, then its issuers"
        )
    if len(set(map(fingerprint, chain))) < len(chain):
        raise CertificateRefused("a certificate comes twice in it: each belongs there once")
    for number, certificate in enumerate(chain, start=1):
        begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        if now < begin.timestamp():
            raise CertificateRefused(f"certificate {number} is valid only from {begin:%Y-%m-%d %H:%M:%S} UTC on")
        if now > end.timestamp():
            raise CertificateRefused(f"certificate {number} expired at {end:%Y-%m-%d %H:%M:%S} UTC")
        is_authority = _is_authority(certificate, number)
        if is_authority and number == 1:
            raise CertificateRefused("the first certificate is a certificate authority's: have one issued without CA")
        if not is_authority and number > 1:
            raise CertificateRefused(f"certificate {number} is not a certificate authority's (CA:TRUE)")
    for number, (issued, issuer) in enumerate(pairwise(chain), start=1):
        try:
            issued.verify_directly_issued_by(issuer)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            raise CertificateRefused(
                f"certificate {number + 1} did not issue certificate {number}: after the key's own comes its issuer, "
                "then that one's"
            ) from None


def pem(chain: Sequence[x509.Certificate]) -> str:
    """The certificates and nothing else, as PEM text (RFC 7468 §5)."""
    return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in chain)


def fingerprint(certificate: x509.Certificate) -> str:
    """The x5t#S256 of a certificate: base64url of SHA-256 over its DER.

    Source: RFC 7517 §4.9
    """
    return base64url(certificate.fingerprint(hashes.SHA256()))


def members(chain: Sequence[x509.Certificate]) -> dict[str, object]:
    """x5c, x5t and x5t#S256 of a JWK.

    The first certificate is the key's own.

    Source: RFC 7517 §4.7-4.9, Spec 2.9
    """
    der = [certificate.public_bytes(Encoding.DER) for certificate in chain]
    return {
        "x5c": [base64.b64encode(each).decode() for each in der],
        "x5t": base64url(chain[0].fingerprint(hashes.SHA1())),  # noqa: S303 - the member is defined so
        "x5t#S256": fingerprint(chain[0]),
    }


def _body(block: str) -> str:
    """The text between a block's two delimiter lines.

    The block begins inside its first.
    """
    label, dashes, rest = block.partition("-----")
    if dashes and label != "CERTIFICATE":
        named = f" ({label})" if _LABEL.fullmatch(label) else ""
        raise CertificateRefused(f"besides certificates it holds something else{named}: take that out")
    body, end, _ = rest.partition(_END)
    if not end:
        raise CertificateRefused(f"a certificate in it has no line {_END}: it is cut off")
    return body


def _certificate(body: str, number: int) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(f"{_BEGIN}CERTIFICATE-----{body}{_END}".encode())
    except ValueError:
        raise CertificateRefused(f"certificate {number} cannot be read: it is cut off or was changed") from None


def _is_authority(certificate: x509.Certificate, number: int) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        raise CertificateRefused(f"certificate {number} has extensions that cannot be read") from None


def _certifies(certificate: x509.Certificate, public: ec.EllipticCurvePublicKey) -> bool:
    try:
        return certificate.public_key() == public
    except (ValueError, UnsupportedAlgorithm):
        return False


def _name(common_name: str) -> x509.Name:
    if not common_name.isprintable():
        raise CertificateRefused("the subject name of a certificate has printable characters only")
    try:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    except ValueError:
        raise CertificateRefused("the subject name of a certificate has 1 to 64 characters") from None


def _signing_only() -> x509.KeyUsage:
    return x509.KeyUsage(**{use: use == "digital_signature" for use in _USES})
