"""Own TLS: 1.3, or 1.2 with ECDHE and AES-GCM only (D52)."""

from __future__ import annotations

import datetime
import ssl
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from corpid.web.tls import CertificateUnusable, server_context
from tests.web.served import Recorder, Served, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def write_pair(directory: Path, password: bytes | None = None) -> tuple[Path, Path]:
    """A self-signed certificate for localhost and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    sealing = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    paths = directory / "certificate.pem", directory / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(pem))
    paths[1].write_bytes(key.private_bytes(pem, pkcs8, sealing))
    return paths


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return write_pair(tmp_path)


@pytest.fixture
def secure(pair: tuple[Path, Path]) -> Iterator[Served]:
    with served(Recorder(), tls=server_context(*pair)) as running:
        yield running


def trusting(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificate)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_1_2_and_1_3_are_spoken(secure: Served, pair: tuple[Path, Path], version: ssl.TLSVersion) -> None:
    context = trusting(pair[0])
    context.minimum_version = context.maximum_version = version
    with secure.call(tls=context) as caller:
        assert caller.say(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n").answer().status == 200
        cipher = caller.socket.cipher()  # type: ignore[attr-defined]
        assert version is ssl.TLSVersion.TLSv1_3 or cipher[0].startswith("ECDHE-ECDSA-AES")


@pytest.mark.parametrize(
    "ciphers", ["ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES128-SHA256", "AES128-GCM-SHA256", "DHE+AESGCM"]
)
def test_other_ciphers_of_1_2_are_refused(secure: Served, pair: tuple[Path, Path], ciphers: str) -> None:
    context = trusting(pair[0])
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(ciphers)
    with pytest.raises(ssl.SSLError):
        secure.call(tls=context)


def test_nothing_below_1_2_is_offered(pair: tuple[Path, Path]) -> None:
    context = server_context(*pair)
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    older = {cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3"}
    assert older == {
        f"ECDHE-{key}-AES{bits}-GCM-SHA{digest}"
        for key in ("ECDSA", "RSA")
        for bits, digest in ((128, 256), (256, 384))
    }


def test_plain_http_on_a_tls_port_is_not_answered(secure: Served) -> None:
    with secure.call() as caller:
        caller.say(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200" not in caller.rest()


def test_the_limits_hold_inside_tls(secure: Served, pair: tuple[Path, Path]) -> None:
    """D47"""
    with secure.call(tls=trusting(pair[0])) as caller:
        caller.say(b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70000\r\n\r\n")
        assert caller.answer().status == 413


def test_files_that_do_not_fit_are_refused_with_a_sentence(pair: tuple[Path, Path], tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(CertificateUnusable, match="cannot be used together"):
        server_context(pair[0], write_pair(other)[1])
    with pytest.raises(CertificateUnusable, match="the key has no password"):
        server_context(*write_pair(other, password=b"secret"))
    with pytest.raises(CertificateUnusable, match="check the paths"):
        server_context(other / "missing.pem", pair[1])
