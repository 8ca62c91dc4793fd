"""What a scanner would find at a port of our own TLS: every version and every suite is tried over a socket (D52).

A server of the test's own, which accepts what is weak, shows that the scanner can speak what it is refused.
"""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
import warnings
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from corpid.web.http.server import server_context
from tests.certificates import Authority
from tests.web.served import PATIENCE, PROCESS_SECONDS, Recorder, Served, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1")

EVERYTHING = "ALL:COMPLEMENTOFALL:@SECLEVEL=0"
GOOD = {f"AES{bits}-GCM-SHA{digest}" for bits, digest in ((128, 256), (256, 384))}
GOOD_1_3 = {"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"}
OP_ALLOW_CLIENT_RENEGOTIATION = 1 << 8  # of OpenSSL 3; Python does not name it
WEAK_VERSIONS = (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1)


def private_key(kind: str) -> ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey:
    if kind == "RSA":
        return rsa.generate_private_key(65537, 2048)
    return ec.generate_private_key(ec.SECP256R1())


@pytest.fixture(scope="module", params=["ECDSA", "RSA"])
def kind(request: pytest.FixtureRequest) -> str:
    """Of the certificate's key: the suites of 1.2 depend on it."""
    return str(request.param)


@pytest.fixture(scope="module")
def root() -> Authority:
    return Authority("Root")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, root: Authority, kind: str) -> tuple[Path, Path]:
    """A chain of two certificates, without the root, and the key of the first."""
    folder, key, above = tmp_path_factory.mktemp("tls"), private_key(kind), root.authority("Between")
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    browser_key = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    own = above.sign(name, key.public_key(), ca=False, extra=browser_key)
    pem = serialization.Encoding.PEM
    (folder / "chain.pem").write_bytes(own.public_bytes(pem) + above.chain[0].public_bytes(pem))
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(secret)
    return folder / "chain.pem", folder / "key.pem"


@pytest.fixture(scope="module")
def ours(files: tuple[Path, Path]) -> Iterator[Served]:
    with served(Recorder(), tls=server_context(*files)) as running:
        yield running


@pytest.fixture(scope="module")
def lax(files: tuple[Path, Path]) -> Iterator[int]:
    """A port that accepts every version and suite that there is."""
    context = anything(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    context.options |= OP_ALLOW_CLIENT_RENEGOTIATION
    context.load_cert_chain(*files)
    with accepting(context) as port:
        yield port


def anything(context: ssl.SSLContext) -> ssl.SSLContext:
    context.set_ciphers(EVERYTHING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        context.minimum_version = ssl.TLSVersion.TLSv1
    return context


@contextmanager
def accepting(context: ssl.SSLContext) -> Iterator[int]:
    """A port of 127.0.0.1 where one caller after the other may shake hands."""

    def accept() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            connection.settimeout(PATIENCE)
            try:
                with context.wrap_socket(connection, server_side=True) as secure:
                    secure.recv(1)
            except OSError:
                connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE)


def scanner(version: ssl.TLSVersion, suites: str = EVERYTHING) -> ssl.SSLContext:
    """A caller that speaks one version, believes everybody and offers these suites."""
    context = anything(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        context.minimum_version = context.maximum_version = version
    context.set_ciphers(suites)
    return context


def agreed(port: int, context: ssl.SSLContext) -> str | None:
    """The suite that a handshake ended with; None where it was refused."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        try:
            with context.wrap_socket(connection, server_hostname="localhost") as secure:
                found = secure.cipher()
                return found[0] if found else None
        except (ssl.SSLError, ConnectionResetError):
            return None


@cache
def suites_of_1_2() -> tuple[str, ...]:
    """Every suite below 1.3 that the scanner's library has."""
    known = anything(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)).get_ciphers()
    return tuple(sorted(suite["name"] for suite in known if suite["protocol"] != "TLSv1.3"))


def test_of_the_versions_1_2_and_1_3_are_accepted_and_no_older_one(ours: Served, lax: int) -> None:
    """D52; a caller that can do it finds the older ones elsewhere."""
    for version in WEAK_VERSIONS:
        assert agreed(lax, scanner(version)), version
        assert agreed(ours.port, scanner(version)) is None, version
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        assert agreed(ours.port, scanner(version)), version


def test_of_all_suites_of_1_2_those_with_ecdhe_and_aes_gcm_are_accepted(ours: Served, lax: int, kind: str) -> None:
    """D52: each suite is offered alone."""
    tried = suites_of_1_2()
    accepted = {suite for suite in tried if agreed(ours.port, scanner(ssl.TLSVersion.TLSv1_2, f"{suite}:@SECLEVEL=0"))}
    assert accepted == {f"ECDHE-{kind}-{good}" for good in GOOD}
    weak = [suite for suite in tried if agreed(lax, scanner(ssl.TLSVersion.TLSv1_2, f"{suite}:@SECLEVEL=0"))]
    assert len(set(weak) - accepted) >= 10, weak
    assert any("CBC" in suite or suite.endswith("-SHA") for suite in weak)


def test_of_1_3_the_suites_are_those_of_its_rfc(ours: Served) -> None:
    """D52, RFC 8446 §B.4."""
    assert agreed(ours.port, scanner(ssl.TLSVersion.TLSv1_3)) in GOOD_1_3


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_the_chain_is_served_and_nothing_is_compressed(ours: Served, root: Authority, version: ssl.TLSVersion) -> None:
    """Who trusts the root alone finds the way to it; ALPN names what is spoken."""
    context = ssl.create_default_context(cadata=root.chain[0].public_bytes(serialization.Encoding.PEM).decode())
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2", "http/1.1"])
    connection = socket.create_connection(("127.0.0.1", ours.port), timeout=PATIENCE)
    with context.wrap_socket(connection, server_hostname="localhost") as secure:
        assert secure.compression() is None
        assert secure.selected_alpn_protocol() == "http/1.1"


def renegotiated(port: int) -> str:
    """What OpenSSL's own client says when it asks for another handshake on a connection of TLS 1.2."""
    command = ["openssl", "s_client", "-tls1_2", "-connect", f"127.0.0.1:{port}", "-servername", "localhost"]
    done = subprocess.run(command, input="R\n", capture_output=True, text=True, timeout=PROCESS_SECONDS, check=False)
    return done.stdout + done.stderr


def test_nobody_renegotiates(ours: Served, lax: int) -> None:
    """D52; RFC 5746: a caller is told `no_renegotiation`, elsewhere it gets its second handshake."""
    said = renegotiated(ours.port)
    assert "RENEGOTIATING" in said
    assert "no renegotiation" in said
    assert "no renegotiation" not in renegotiated(lax)
