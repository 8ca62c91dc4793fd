"""Where Redis or Valkey is, and what CorpID says to an engine that it cannot use."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import DNSName, IPAddress, SubjectAlternativeName

from corpid.stores.valkey.transient import ValkeyEngine, open_valkey
from tests.adapters.on_redis import PASSWORD, RULES, refusal
from tests.certificates import Authority
from tests.clusters import RedisCluster
from tests.engines import RedisServer
from tests.machine import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

FORBIDDEN = (
    *("FLUSHALL", "FLUSHDB", "SWAPDB 0 1", "KEYS *", "CONFIG GET save", "SHUTDOWN", "REPLICAOF NO ONE"),
    *("RESTORE corpid:x 0 x", "MIGRATE host 1 corpid:x 0 1"),
)
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def server(program: str) -> Iterator[RedisServer]:
    with RedisServer(program=program) as running:
        yield running


def works(url: str) -> None:
    async def attempt() -> None:
        store = await open_valkey(url, clock=time.time)
        async with store.batch(0) as batch:
            assert await batch.add("proof", bytes(32), 60)
            assert not await batch.add("proof", bytes(32), 60)
        await store.close()

    asyncio.run(attempt())


def test_the_doctor_says_no_persistence_only_of_an_engine_whose_settings_it_may_read(server: RedisServer) -> None:
    """With the user of docs/operate.md it cannot know whether `save` is set."""
    server.command("ACL", "SETUSER", "corpid", "on", f">{PASSWORD}", *RULES)

    def said(url: str) -> str:
        [found] = asyncio.run(ValkeyEngine(url).describe())
        return found.seen

    assert "no persistence" in said(server.url)
    hidden = said(server.url.replace("://", f"://corpid:{PASSWORD}@"))
    assert "may not read the setting save" in hidden
    assert "no persistence" not in hidden


def test_a_password_is_needed_where_the_engine_wants_one_and_never_shown(server: RedisServer) -> None:
    server.command("ACL", "SETUSER", "corpid", "on", f">{PASSWORD}", "~*", "+@all")
    server.command("CONFIG", "SET", "requirepass", "another")
    place = f"127.0.0.1:{server.port}/0"
    assert "refuses the user or password" in refusal(f"redis://{place}")
    assert "refuses the user or password" in refusal(f"redis://:{PASSWORD}@{place}")
    works(f"redis://corpid:{PASSWORD}@{place}")


def test_a_user_who_may_too_little_is_told_what_is_needed(server: RedisServer) -> None:
    server.command("ACL", "SETUSER", "corpid", "on", f">{PASSWORD}", *RULES[:2])
    assert "does not let this user" in refusal(f"redis://corpid:{PASSWORD}@127.0.0.1:{server.port}/0")
    server.command("ACL", "SETUSER", "corpid", *RULES[2:])
    works(f"redis://corpid:{PASSWORD}@127.0.0.1:{server.port}/0")


def test_the_documented_user_cannot_empty_redis_nor_reach_what_belongs_to_others(server: RedisServer) -> None:
    """docs/reliability.md and docs/operate.md name its rules."""
    server.command("ACL", "SETUSER", "corpid", "on", f">{PASSWORD}", *RULES)
    for page in ("reliability", "operate"):
        assert " ".join(RULES) in (DOCS / f"{page}.md").read_text(encoding="utf-8")
    for words in (*map(str.split, FORBIDDEN), ("GET", "another"), ("SET", "another", "")):
        assert server.command("ACL", "DRYRUN", "corpid", *words) != "+OK", words


def test_an_option_of_the_driver_changes_no_answers(server: RedisServer) -> None:
    works(f"{server.url}?decode_responses=true&protocol=3&health_check_interval=1")


@pytest.mark.parametrize("policy", ["volatile-lru", "allkeys-lru", "volatile-ttl"])
def test_an_engine_that_may_evict_what_was_spent_is_refused(server: RedisServer, policy: str) -> None:
    """D7, D18: an evicted record of what was spent would let it be spent again."""
    server.command("CONFIG", "SET", "maxmemory-policy", policy)
    assert f"set maxmemory-policy to noeviction (it is {policy})" in refusal(server.url)


def test_tls_with_an_authority_of_ones_own(tmp_path: Path, program: str) -> None:
    """D52: what was spent may cross a network; a certificate that nobody vouches for is refused."""
    port = free_port()
    with RedisServer("--save", "", "--tls-port", str(port), *certified(tmp_path), program=program):
        works(f"{program}s://localhost:{port}/0?ssl_ca_certs={tmp_path / 'authority.pem'}")
        assert "CERTIFICATE_VERIFY_FAILED" in refusal(f"{program}s://localhost:{port}/0")


@pytest.mark.full
@pytest.mark.parametrize("announced", ["ip", "hostname"])
def test_tls_to_every_node_of_a_cluster(tmp_path: Path, announced: str, program: str) -> None:
    """D52. The certificate has to name what the nodes announce."""
    names = ("--cluster-announce-hostname", "localhost", "--cluster-preferred-endpoint-type", announced)
    options = certified(tmp_path, *([IPAddress(ip_address("127.0.0.1"))] if announced == "ip" else []))
    with RedisCluster("--save", "", "--tls-cluster", "yes", *names, *options, program=program) as cluster:
        place = f"localhost:{cluster.primaries[0].tls_port}"
        works(f"{program}s://{place}/0?ssl_ca_certs={tmp_path / 'authority.pem'}")
        assert "CERTIFICATE_VERIFY_FAILED" in refusal(f"{program}s://{place}/0")


def certified(path: Path, *names: IPAddress) -> list[str]:
    """The engine's options for TLS."""
    authority = Authority("Authority")
    (path / "authority.pem").write_bytes(authority.chain[0].public_bytes(serialization.Encoding.PEM))
    certify(path, authority, *names)
    files = {"cert-file": "certificate.pem", "key-file": "key.pem", "ca-cert-file": "authority.pem"}
    named = [(f"--tls-{option}", str(path / file)) for option, file in files.items()]
    return ["--tls-auth-clients", "no", *(word for option in named for word in option)]


def certify(path: Path, authority: Authority, *names: IPAddress) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = SubjectAlternativeName([DNSName("localhost"), *names])
    subject = Authority("Redis").name
    certificate = authority.sign(subject, key.public_key(), ca=None, extra=name)
    (path / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (path / "key.pem").write_bytes(key.private_bytes(pem, pkcs8, serialization.NoEncryption()))


@pytest.mark.parametrize(("scheme", "name"), [("redis", "Redis"), ("valkey", "Valkey")])
def test_nobody_there(scheme: str, name: str) -> None:
    sentence = refusal(f"{scheme}://user:{PASSWORD}@127.0.0.1:1/0")
    assert sentence.startswith(f"{name} at 127.0.0.1:1 cannot be reached; is it running")


@pytest.mark.parametrize(
    "url",
    [
        f"http://u:{PASSWORD}@localhost",
        f"redis://u:{PASSWORD}@localhost:port",
        f"valkey://u:{PASSWORD}/@localhost:6379",
    ],
)
def test_a_wrong_address_is_explained(url: str) -> None:
    assert "write redis://HOST:PORT/0" in refusal(url)


def test_something_else_at_the_address_is_not_taken_for_redis() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        answering = threading.Thread(target=answer_as_a_web_server, args=(listening,))
        answering.start()
        assert "Redis at 127.0.0.1:" in refusal(f"redis://127.0.0.1:{listening.getsockname()[1]}/0")
        answering.join()


def answer_as_a_web_server(listening: socket.socket) -> None:
    connection, _ = listening.accept()
    with connection:
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
