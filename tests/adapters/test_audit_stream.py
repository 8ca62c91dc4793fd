"""The audit leaves at least once, in order, by one process at a time (docs/decisions/0030)."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import socket
import ssl
import subprocess
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from corpid.flows.operations import audit_stream
from corpid.flows.operations.audit_stream import AuditStream, last_left, set_position
from corpid.outbound import audit_targets
from corpid.outbound.audit_targets import AuditTarget, UnusableAuthorities, audit_target
from corpid.rules.audit import AuditEvent
from corpid.rules.audit_stream import target
from corpid.rules.directory.access import CommandLine
from corpid.stores.sql.audit_retention import RetentionPeriods
from tests.adapters.opened import EVENT, NOW
from tests.adapters.syslog_server import SyslogServer
from tests.certificates import Authority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

PATIENCE = 30.0
DAY = 86_400
TARGETS: list[AuditTarget] = []
"""those of this test"""


class Process:
    """The stream of one process, and what it logged."""

    def __init__(self, stores: SqlStores, to: str, name: str = "one", authorities: Path | None = None) -> None:
        self.log: list[str] = []
        self.details: list[str] = []
        TARGETS.append(audit_target(target(to), host="node1", authorities=authorities))
        self.stream = AuditStream(
            stores.registry,
            TARGETS[-1],
            process=name,
            clock=lambda: NOW + 60,
            report=partial(self._logged, "info"),
            warn=partial(self._logged, "warning"),
        )

    def _logged(self, level: str, event: str, detail: str) -> None:
        self.log.append(f"{level} {event}")
        self.details.append(detail)

    async def until(self, reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not reached():
                await self.stream.round()
                await asyncio.sleep(0.01)


async def written(stores: SqlStores, count: int = 1, **event: Any) -> None:
    for _ in range(count):
        await stores.registry.audit.write(AuditEvent(**{"actor": "system", "action": "key.rotate", **event}), now=NOW)


def numbers(file: Path) -> list[int]:
    return [json.loads(line)["number"] for line in file.read_bytes().splitlines()]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Attempts follow at once; files and connections are closed."""
    monkeypatch.setattr(audit_stream, "_LONGEST_PAUSE", 0.05)
    yield
    while TARGETS:
        asyncio.run(TARGETS.pop().close())


async def test_a_file_gets_every_entry_in_order_and_the_position_is_stored(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"

    async with place.opened() as stores:
        await written(stores, 450, detail={"device": "a\nb\u2028"})
        process = Process(stores, str(file))
        await process.until(lambda: file.exists() and len(numbers(file)) == 450)
        assert numbers(file) == list(range(1, 451))
        assert await last_left(stores.registry) == 450
        await written(stores)
        await process.until(lambda: len(numbers(file)) == 451)
        assert process.log == ["info audit_stream_begun"]
        assert process.stream.lag == 0
    assert file.stat().st_mode & 0o007 == 0


async def test_another_process_goes_on_after_the_last_entry(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"

    async with place.opened() as stores:
        await written(stores, 3)
        first = Process(stores, str(file))
        await first.until(lambda: file.exists() and len(numbers(file)) == 3)
        await first.stream.end()
        await written(stores, 2)
        second = Process(stores, str(file), "two")
        await second.until(lambda: len(numbers(file)) == 5)
        assert numbers(file) == [1, 2, 3, 4, 5]


async def test_of_two_processes_one_streams_and_the_other_takes_over_when_it_is_silent(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, other = tmp_path / "one", tmp_path / "two"

    async with place.opened() as stores:
        first, second = Process(stores, str(file)), Process(stores, str(other), "two")
        await asyncio.gather(first.stream.round(), second.stream.round())
        streaming, watching = (first, second) if first.log else (second, first)
        assert watching.log == []
        own = file if streaming is first else other
        await written(stores, 2)
        await streaming.until(lambda: own.exists() and len(numbers(own)) == 2)
        await watching.stream.round()
        assert not (file.exists() and other.exists())
        monkeypatch.setattr(audit_stream, "TAKEOVER_SECONDS", 0.1)
        await written(stores)
        taken = file if own is other else other
        await watching.until(taken.exists)
        await watching.until(lambda: bool(numbers(taken)))
        assert (numbers(own), numbers(taken)) == ([1, 2], [3])
        monkeypatch.setattr(audit_stream, "TAKEOVER_SECONDS", 100.0)
        await written(stores)
        await streaming.stream.round()
        assert numbers(own) == [1, 2], "the one that was silent finds that it streams no more"


async def test_many_that_begin_at_once_are_one(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"

    async with place.opened() as stores:
        await written(stores, 20)
        processes = [Process(stores, str(file), f"process {number}") for number in range(8)]
        for _ in range(4):
            await asyncio.gather(*(each.stream.round() for each in processes))
        assert numbers(file) == list(range(1, 21))
        assert sum(len(each.log) for each in processes) == 1


async def test_an_entry_that_becomes_visible_late_is_waited_for(postgresql: Place, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"

    async with postgresql.opened() as stores:
        held, end = asyncio.Event(), asyncio.Event()

        async def holding() -> None:
            async with stores.database.transaction():
                await stores.registry.audit.write(EVENT, now=NOW)
                held.set()
                await end.wait()

        slow = asyncio.create_task(holding())
        await held.wait()
        await written(stores)
        process = Process(stores, str(file))
        for _ in range(5):
            await process.stream.round()
        assert not file.exists()
        assert process.stream.lag == 60
        end.set()
        await slow
        await process.until(lambda: file.exists() and len(numbers(file)) == 2)
        assert numbers(file) == [1, 2]


async def test_a_rotated_file_is_opened_again_and_nothing_is_lost(place: Place, tmp_path: Path) -> None:
    file, rotated = tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.1"

    async with place.opened() as stores:
        process = Process(stores, str(file))
        await written(stores, 2)
        await process.until(lambda: file.exists() and len(numbers(file)) == 2)
        file.rename(rotated)
        await written(stores, 2)
        await process.until(lambda: file.exists() and len(numbers(file)) == 2)
        assert (numbers(rotated), numbers(file)) == ([1, 2], [3, 4])


async def test_half_a_line_of_a_process_that_died_is_ended_and_its_entry_follows(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    file.write_bytes(b'{"number":1,"act')

    async with place.opened() as stores:
        await written(stores)
        await Process(stores, str(file)).until(lambda: file.read_bytes().count(b"\n") == 2)
    broken, whole = file.read_bytes().splitlines()
    assert broken == b'{"number":1,"act'
    assert json.loads(whole)["number"] == 1


async def test_what_is_no_file_or_cannot_be_written_is_said_once_and_waited_for(place: Place, tmp_path: Path) -> None:
    folder, pipe = tmp_path / "missing", tmp_path / "pipe"
    os.mkfifo(pipe)

    async with place.opened() as stores:
        await written(stores, 3)
        for to, says in ((pipe, "it is not a regular file"), (folder / "audit.jsonl", "No such file or directory")):
            await set_position(stores.registry, CommandLine(by="ops@node1"), 0, now=NOW)
            process = Process(stores, str(to), to.name)
            await process.until(lambda process=process: bool(process.details))  # type: ignore[misc]
            await process.until(lambda process=process: "warning audit_stream_failed" in process.log)  # type: ignore[misc]
            for _ in range(3):
                await process.stream.round()
                await asyncio.sleep(0.1)
            assert process.log.count("warning audit_stream_failed") == 1
            assert says in process.details[-1]
            if to is pipe:
                pipe.unlink()
                await process.until(pipe.exists)
                await process.until(lambda process=process: process.log[-1] == "info audit_stream_resumed")  # type: ignore[misc]
        folder.mkdir()
        await process.until(lambda: process.log[-1] == "info audit_stream_resumed")
    assert numbers(folder / "audit.jsonl")[:3] == [1, 2, 3]


@contextmanager
def small_disk(path: Path) -> Iterator[None]:
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", path], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


async def test_a_full_disk_is_waited_for_and_nothing_is_lost(place: Place, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk"):
        file, ballast = tmp_path / "disk" / "audit.jsonl", tmp_path / "disk" / "ballast"
        ballast.write_bytes(bytes(60_000))

        async with place.opened() as stores:
            await written(stores, 60)
            process = Process(stores, str(file))
            await process.until(lambda: "warning audit_stream_failed" in process.log)
            assert "No space left on device" in process.details[-1]
            assert process.stream.lag == 60
            ballast.unlink()
            await process.until(lambda: process.log[-1] == "info audit_stream_resumed")
        whole = [json.loads(line)["number"] for line in file.read_bytes().splitlines() if line.endswith(b"}")]
        assert set(whole) == set(range(1, 61))
        assert whole[-60:] == list(range(1, 61))


def certificates(directory: Path, *, name: str = "127.0.0.1") -> tuple[ssl.SSLContext, Path]:
    """A server's context for an address, and the file of its authority."""
    authority, key = Authority("test"), ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(name))])
    certificate = authority.sign(subject, key.public_key(), ca=False, extra=names)
    own, ca = directory / "server.pem", directory / "ca.pem"
    ca.write_bytes(authority.chain[0].public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    own.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own)
    return context, ca


@pytest.mark.parametrize("scheme", ["tcp", "tls"])
async def test_a_syslog_server_gets_messages_by_their_length(place: Place, tmp_path: Path, scheme: str) -> None:
    """RFC 5424, RFC 5425, RFC 6587 §3.4.1."""
    context, ca = certificates(tmp_path)
    with SyslogServer(tls=context if scheme == "tls" else None) as server:
        async with place.opened() as stores:
            await written(stores, 250, detail={"device": "x\n12 <1>1 forged"})
            to = f"syslog+{scheme}://127.0.0.1:{server.port}"
            process = Process(stores, to, authorities=ca if scheme == "tls" else None)
            await process.until(lambda: len(server.numbers) == 250)
            assert await last_left(stores.registry) in {0, 250}
        assert server.numbers == list(range(1, 251))
        assert {each["detail"]["device"] for each in server.entries} == {"x\n12 <1>1 forged"}


async def test_a_server_whose_certificate_is_not_trusted_gets_nothing(place: Place, tmp_path: Path) -> None:
    """RFC 5425 §5.2"""
    context, _ = certificates(tmp_path)
    with SyslogServer(tls=context) as server:
        async with place.opened() as stores:
            await written(stores)
            process = Process(stores, f"syslog+tls://127.0.0.1:{server.port}")
            await process.until(lambda: "warning audit_stream_failed" in process.log)
            assert "its certificate is not valid" in process.details[-1]
        assert server.numbers == []


@pytest.mark.parametrize("to", [f"syslog+tcp://{'a' * 64}.example:6514", "/tmp/a\0b"])
async def test_a_name_that_cannot_be_one_is_said(place: Place, to: str) -> None:
    async with place.opened() as stores:
        await written(stores)
        process = Process(stores, to)
        await process.until(lambda: "warning audit_stream_failed" in process.log)
        assert process.stream.lag == 60


def test_authorities_that_cannot_be_read_are_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(UnusableAuthorities, match=r"audit_stream_ca: .*missing\.pem cannot be used"):
        audit_target(target("syslog+tls://siem.example:6514"), host="n", authorities=tmp_path / "missing.pem")


async def test_a_server_that_restarts_loses_nothing(place: Place) -> None:
    """What a receiver may not have read before its connection ended is sent again."""
    with SyslogServer() as first:
        async with place.opened() as stores:
            process = Process(stores, f"syslog+tcp://127.0.0.1:{first.port}")
            await written(stores, 3)
            await process.until(lambda: len(first.numbers) == 3)
            first.__exit__()
            await written(stores, 2)
            await process.until(lambda: "warning audit_stream_failed" in process.log)
            assert process.stream.lag == 60
            with SyslogServer(port=first.port) as second:
                await process.until(lambda: process.log[-1] == "info audit_stream_resumed")
                assert second.numbers == [1, 2, 3, 4, 5]


async def test_a_server_that_dies_before_it_reads_loses_nothing(place: Place) -> None:
    """The kernel had acknowledged what nobody read."""
    with SyslogServer(reads=False) as deaf:
        async with place.opened() as stores:
            process = Process(stores, f"syslog+tcp://127.0.0.1:{deaf.port}")
            await written(stores, 3)
            while await last_left(stores.registry) < 3:
                await process.stream.round()
            deaf.__exit__()
            with SyslogServer(port=deaf.port) as second:
                await written(stores)
                await process.until(lambda: len(second.numbers) == 4)
                assert second.numbers == [1, 2, 3, 4]


@pytest.mark.full
async def test_a_slow_server_gets_a_backlog_bit_by_bit(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It acknowledges in time, since little waits in the kernel."""
    monkeypatch.setattr(audit_targets, "_SECONDS", 1.5)
    with SyslogServer(pause=0.05) as server:
        async with place.opened() as stores:
            await written(stores, 700, detail={"device": "x" * 900})
            process = Process(stores, f"syslog+tcp://127.0.0.1:{server.port}")
            await process.until(lambda: len(server.numbers) == 700)
            assert process.log == ["info audit_stream_begun"]
            assert server.numbers == list(range(1, 701))


@pytest.mark.full
async def test_a_server_that_ends_idle_connections_gets_no_entry_for_ever(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_stream, "_RESENT_SECONDS", 2.0)
    with SyslogServer(idle=0.4) as server:
        async with place.opened() as stores:
            process = Process(stores, f"syslog+tcp://127.0.0.1:{server.port}")
            for number in range(1, 11):
                await written(stores)
                await process.until(lambda number=number: number in server.numbers)  # type: ignore[misc]
                await process.until(lambda: process.stream.lag == 0)
                await asyncio.sleep(0.5)
            assert "warning audit_stream_failed" not in process.log
        assert set(server.numbers) == set(range(1, 11))
        assert 1 < server.numbers.count(1) < 6


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM])
async def test_a_unix_socket_gets_messages(place: Place, tmp_path: Path, kind: socket.SocketKind) -> None:
    path, read = tmp_path / "log", bytearray()
    with socket.socket(socket.AF_UNIX, kind) as listening:
        listening.bind(str(path))

        def receive() -> None:
            if kind is socket.SOCK_STREAM:
                listening.listen()
                connection, _ = listening.accept()
                with connection:
                    while some := connection.recv(65536):
                        read.extend(some)
            else:
                while read.count(b"corpid - key.rotate") < 5:
                    read.extend(listening.recv(65536))

        receiving = threading.Thread(target=receive, daemon=True)
        receiving.start()

        async with place.opened() as stores:
            await written(stores, 5)
            process = Process(stores, f"syslog+unix://{path}")
            await process.until(lambda: read.count(b"corpid - key.rotate") == 5)
            async with asyncio.timeout(PATIENCE):
                while await last_left(stores.registry) < 5:
                    await process.stream.round()
            await process.stream.end()
        receiving.join()


async def test_entries_that_have_not_left_are_not_pruned(place: Place) -> None:
    """docs/decisions/0030: nor are their details."""
    async with place.opened() as stores:
        await written(stores, 4, detail={"address": "192.0.2.7"})
        later = NOW + 400 * DAY
        event = AuditEvent(actor="operator", action="audit.prune")
        kept = RetentionPeriods(audit_days=1, sign_in_days=1, audit_detail_days=1)
        pruned = await stores.registry.retention.prune(event, now=later, kept=kept, last=2)
        assert (pruned.removed, pruned.erased) == (2, 2)
        left = await stores.registry.audit.entries()
        assert [(each.number, each.erased) for each in left if each.action != "audit.prune"] == [(3, False), (4, False)]


async def test_the_position_can_be_moved_which_is_audited(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"

    async with place.opened() as stores:
        await written(stores, 3)
        process = Process(stores, str(file))
        await process.until(lambda: file.exists() and len(numbers(file)) == 3)
        assert await set_position(stores.registry, CommandLine(by="ops@node1"), 1, now=NOW)
        await process.until(lambda: len(numbers(file)) == 6)
        assert numbers(file) == [1, 2, 3, 2, 3, 4]
        [moved] = [json.loads(line) for line in file.read_bytes().splitlines()[-1:]]
        assert (moved["action"], moved["detail"]) == ("audit.stream", {"from": "3", "to": "1"})
