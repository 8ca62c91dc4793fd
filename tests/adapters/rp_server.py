"""A relying party's web server on 127.0.0.1, with a certificate of an own authority, which behaves as a test says."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import ssl
import tempfile
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from corpid.outbound.destinations import INTERNET
from corpid.outbound.http_client import HttpClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]

NAME = "rp.example"
LOOPBACK = ipaddress.ip_network("127.0.0.0/8")


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


@cache
def _authority() -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    return key, _certificate("Test authority", key.public_key(), key, "Test authority", authority=True)


def _certificate(
    subject: str,
    public: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePrivateKey,
    issuer: str,
    *,
    authority: bool,
) -> x509.Certificate:
    today = dt.datetime.now(dt.UTC)
    usage = x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=authority, crl_sign=authority, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - dt.timedelta(days=1))
        .not_valid_after(today + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(subject)]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .sign(signer, hashes.SHA256())
    )


@cache
def server_context(name: str) -> ssl.SSLContext:
    """TLS of a server that calls itself `name`."""
    signer, _ = _authority()
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _certificate(name, key.public_key(), signer, "Test authority", authority=False)
    pem = serialization.Encoding.PEM
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        chain = Path(folder, "chain.pem")
        secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        chain.write_bytes(secret + certificate.public_bytes(pem))
        context.load_cert_chain(chain)
    return context


@cache
def client_context() -> ssl.SSLContext:
    """TLS of a client that trusts the test authority, and nobody else."""
    _, certificate = _authority()
    return ssl.create_default_context(cadata=certificate.public_bytes(serialization.Encoding.PEM).decode())


def answer(body: bytes = b"{}", status: str = "200 OK", *headers: str) -> Answer:
    """Answer at once, with this."""

    async def write(writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        await writer.drain()

    return write


async def hang(_: asyncio.StreamWriter) -> None:
    """Take the request and never answer."""
    await asyncio.Event().wait()


async def drip(writer: asyncio.StreamWriter) -> None:
    """Answer byte by byte, and never be done."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)


async def flood(writer: asyncio.StreamWriter) -> None:
    """Answer without a length and without an end."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1000\r\n" + b" " * 4096 + b"\r\n")
        await writer.drain()


@dataclass(slots=True, kw_only=True)
class RelyingPartyServer:
    """A running server: where it is, and the requests that it got, head by head."""

    port: int
    requests: list[str] = field(default_factory=list)
    arrivals: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def arrived(self, requests: int) -> None:
        """Wait for as many more requests."""
        for _ in range(requests):
            await self.arrivals.acquire()

    @property
    def url(self) -> str:
        return f"https://{NAME}:{self.port}/jwks"


@asynccontextmanager
async def relying_party(behave: Answer, *, name: str = NAME, tls: bool = True) -> AsyncIterator[RelyingPartyServer]:
    """Run a server that treats every request in this way."""
    running = RelyingPartyServer(port=0)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            running.requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
            running.arrivals.release()
            await behave(writer)
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(lambda _: writer.transport.abort())

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=server_context(name) if tls else None)
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def egress_to(
    *ports: int,
    resolve: Callable[[str, int], Sequence[str]] = lambda _name, _port: ["127.0.0.1"],
    seconds: float = 20.0,
    fetches: int = 16,
    look_ups: int = 32,
) -> HttpClient:
    """The rules of the internet, with 127.0.0.0/8 in the place of the public addresses and these ports for 443."""
    rules = replace(INTERNET, ports=ports, permits=LOOPBACK.__contains__)
    return HttpClient(
        own_url="https://id.example", rules=rules, resolve=resolve, ssl_context=client_context(),
        seconds=seconds, fetches=fetches, look_ups=look_ups,
    )  # fmt: skip
