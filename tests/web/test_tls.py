"""Own TLS: 1.3, or 1.2 with ECDHE and AES-GCM only (D52)."""

from __future__ import annotations

import asyncio
import datetime
import json
import socket
import ssl
import sys
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from corpid.web.http import server
from corpid.web.http.server import CertificateUnusable, ServerCertificate, server_context
from corpid.web.telemetry import access_log
from tests.web.served import PATIENCE, Recorder, Served, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def write_pair(directory: Path, password: bytes | None = None, *, days: int = 1) -> tuple[Path, Path]:
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
        .not_valid_after(now + datetime.timedelta(days=days))
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


def test_plain_http_on_a_tls_port_is_not_answered(secure: Served) -> None:
    with secure.call() as caller:
        caller.say(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200" not in caller.rest()


def test_files_that_do_not_fit_are_refused_with_a_sentence(pair: tuple[Path, Path], tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(CertificateUnusable, match="cannot be used together"):
        server_context(pair[0], write_pair(other)[1])
    with pytest.raises(CertificateUnusable, match="the key has no password"):
        server_context(*write_pair(other, password=b"secret"))
    with pytest.raises(CertificateUnusable, match="check the paths"):
        server_context(other / "missing.pem", pair[1])


def answers(running: Served, certificate: Path) -> int:
    """What a caller gets who trusts this certificate and no other."""
    with running.call(tls=trusting(certificate)) as caller:
        return caller.say(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n").answer().status


def test_renewed_files_are_offered_to_new_connections_and_old_ones_go_on(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    """Certificates of ninety days are renewed while CorpID serves."""
    old = tmp_path / "old.pem"
    old.write_bytes(pair[0].read_bytes())
    certificate = ServerCertificate(*pair)
    with served(Recorder(), tls=certificate.context) as running, running.call(tls=trusting(old)) as earlier:
        write_pair(tmp_path)
        assert answers(running, old) == 200
        certificate.reload_changed()
        assert answers(running, pair[0]) == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            answers(running, old)
        assert earlier.say(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n").answer().status == 200
        nameless = ssl.create_default_context(cafile=pair[0])
        nameless.check_hostname = False
        with socket.create_connection(("127.0.0.1", running.port)) as connection, nameless.wrap_socket(connection):
            pass


def test_the_end_of_the_certificate_follows_its_file(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """D52: the metrics tell it, and an alert asks for another certificate in time."""
    certificate = ServerCertificate(*pair)
    first = certificate.expires_at
    write_pair(tmp_path, days=90)
    certificate.reload_changed()
    assert round((certificate.expires_at - first) / 86400) == 89
    pair[0].write_bytes(b"no certificate")
    certificate.reload_changed()
    assert round((certificate.expires_at - first) / 86400) == 89, "the one before is still offered"


def test_files_that_cannot_be_used_are_told_once_and_the_pair_from_before_stays(
    pair: tuple[Path, Path], tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    access_log.configure(clock=lambda: 0.0, stream=sys.stdout.buffer)
    old = tmp_path / "old.pem"
    old.write_bytes(pair[0].read_bytes())
    certificate = ServerCertificate(*pair)
    other = tmp_path / "other"
    other.mkdir()
    with served(Recorder(), tls=certificate.context) as running:
        for broken in (b"no certificate", write_pair(other)[0].read_bytes(), None):
            pair[0].unlink() if broken is None else pair[0].write_bytes(broken)
            certificate.reload_changed()
            certificate.reload_changed()
            assert answers(running, old) == 200
        write_pair(tmp_path)
        certificate.reload_changed()
        assert answers(running, pair[0]) == 200
    told = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert [line["event"] for line in told] == ["certificate_not_renewed"] * 3 + ["certificate_renewed"]
    assert "cannot be used together" in told[1]["detail"]
    assert "cannot be read" in told[2]["detail"]


async def test_the_files_are_looked_at_again_and_again(
    pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once a minute; here more often."""
    monkeypatch.setattr(server, "LOOK_SECONDS", 0.05)

    async def story() -> None:
        async with (
            server.open_certificate(*pair) as certificate,
            await asyncio.start_server(
                lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=certificate.context
            ) as own,
        ):
            write_pair(tmp_path)
            while not await believed(own.sockets[0].getsockname()[1]):  # noqa: ASYNC110 - it has to be tried
                await asyncio.sleep(0.05)

    async def believed(port: int) -> bool:
        try:
            _, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=trusting(pair[0]), server_hostname="localhost"
            )
        except ssl.SSLCertVerificationError:
            return False
        writer.close()
        return True

    await asyncio.wait_for(story(), PATIENCE)
