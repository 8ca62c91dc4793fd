"""A certificate for localhost and the names below it, as a proxy and its callers get it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.certificates import Authority

if TYPE_CHECKING:
    from pathlib import Path


class Certified(NamedTuple):
    """PEM files. `both` is chain and key in one, as HAProxy wants it; `authority` is what callers trust."""

    chain: Path
    key: Path
    both: Path
    authority: Path


def certified(directory: Path, *, name: str = "localhost", days: int = 60, whole: bool = True) -> Certified:
    """A certificate by an authority below another; not `whole`: without the one between."""
    directory.mkdir()
    root = Authority("Root")
    between = root.authority("Between")
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    own = between.sign(
        subject,
        key.public_key(),
        now - timedelta(days=1),
        now + timedelta(days=days),
        ca=False,
        extra=x509.SubjectAlternativeName([x509.DNSName(name), x509.DNSName(f"legacy.{name}")]),
    )
    pem = serialization.Encoding.PEM
    chain = own.public_bytes(pem) + (between.chain[0].public_bytes(pem) if whole else b"")
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    written = {"chain": chain, "key": secret, "both": chain + secret, "authority": root.chain[0].public_bytes(pem)}
    for part, content in written.items():
        (directory / f"{part}.pem").write_bytes(content)
        (directory / f"{part}.pem").chmod(0o600)
    return Certified(**{part: directory / f"{part}.pem" for part in written})
