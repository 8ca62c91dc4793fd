"""A certificate authority for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

_BEGIN = datetime(2000, 1, 1, tzinfo=UTC)
_END = datetime(2200, 1, 1, tzinfo=UTC)

_CERTIFIES = x509.KeyUsage(
    digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
    key_agreement=False, key_cert_sign=True, crl_sign=False, encipher_only=False, decipher_only=False,
)  # fmt: skip


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Authority:
    """Certifies keys; `chain` is its own certificate and those above it."""

    def __init__(self, name: str, above: Authority | None = None) -> None:
        self.name = _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        issuer = above or self
        self.public = self._key.public_key()
        own = issuer.sign(self.name, self.public, _BEGIN, _END, ca=True)
        self.chain: tuple[x509.Certificate, ...] = (own, *(above.chain if above else ()))

    def authority(self, name: str) -> Authority:
        return Authority(name, above=self)

    def certify(
        self, public: ec.EllipticCurvePublicKey, *, begin: int, seconds: int, ca: bool | None = False
    ) -> x509.Certificate:
        """The key's own certificate, valid from a moment (epoch seconds) on; `ca` None: it does not say."""
        start = datetime.fromtimestamp(begin, UTC)
        return self.sign(_name("Provider"), public, start, start + timedelta(seconds=seconds), ca=ca)

    def sign(
        self,
        subject: x509.Name,
        public: ec.EllipticCurvePublicKey | rsa.RSAPublicKey,
        begin: datetime = _BEGIN,
        end: datetime = _END,
        *,
        ca: bool | None,
        extra: x509.ExtensionType | None = None,
    ) -> x509.Certificate:
        builder = x509.CertificateBuilder(issuer_name=self.name, subject_name=subject, public_key=public)
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(begin).not_valid_after(end)
        if ca is not None:
            builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        if ca:
            builder = builder.add_extension(_CERTIFIES, critical=True)
        of_issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        for identifier in (x509.SubjectKeyIdentifier.from_public_key(public), of_issuer):  # Python 3.13 wants them
            builder = builder.add_extension(identifier, critical=False)
        if extra is not None:
            builder = builder.add_extension(extra, critical=True)
        return builder.sign(self._key, hashes.SHA256())
