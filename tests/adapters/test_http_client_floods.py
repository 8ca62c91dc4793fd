"""Whatever a hostile server sends besides a body counts, too, and ends the fetch at once (D27)."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from corpid.outbound.destinations import HttpClientError
from corpid.outbound.http_client import ANSWER_BYTES, INTERIM_ANSWERS, WIRE_BYTES
from tests.adapters import rp_server
from tests.adapters.rp_server import answer, egress_to, relying_party

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.adapters.rp_server import Answer

MOST_SENT = 64 << 20
"""where a server of this file gives up, so that a fetch that reads everything ends, too"""
IN_BUFFERS = 12 << 20
"""what the system may have taken from the server on its way to nobody"""
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"
FINAL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Flood:
    """Begins with one text and repeats another; `sent` counts bytes."""

    def __init__(self, first: bytes, again: bytes) -> None:
        self.first = first
        self.again = again * max(1, 16384 // len(again))
        self.sent = 0

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        for piece in self._pieces():
            writer.write(piece)
            await writer.drain()
            self.sent += len(piece)

    def _pieces(self) -> Iterator[bytes]:
        yield self.first
        for _ in range(MOST_SENT // len(self.again)):
            yield self.again


def refusal_of(behave: Answer) -> tuple[str, float]:
    """What a fetch is refused with, and after how many seconds."""

    async def fetch() -> tuple[str, float]:
        async with relying_party(behave) as server:
            started = time.perf_counter()
            with pytest.raises(HttpClientError) as refused:
                await egress_to(server.port).fetch(server.url)
            return refused.value.detail, time.perf_counter() - started

    return asyncio.run(fetch())


@pytest.mark.parametrize(
    ("first", "again", "why"),
    [
        pytest.param(b"", INTERIM, "more than 3 interim answers", id="interim answers"),
        pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n", "more than 3 interim answers", id="continue"),
        pytest.param(
            b"", INTERIM.replace(b"</a>", b"x" * 60000), "larger than 65536 bytes", id="large interim answers"
        ),
        pytest.param(b"HTTP/1.1 200 ", b"O", "larger than 65536 bytes", id="status line"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: ", b"x", "larger than 65536 bytes", id="one header"),
        pytest.param(b"HTTP/1.1 200 OK\r\n", b"X: x\r\n", "larger than 65536 bytes", id="headers"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n", b" ", "larger than 65536 bytes", id="body without length"),
        pytest.param(CHUNKED, b"1\r\n \r\n", "larger than 65536 bytes", id="chunks"),
        pytest.param(CHUNKED + b"1;", b"x", "", id="chunk extension"),
        pytest.param(CHUNKED + b"0\r\n", b"X: x\r\n", "larger than 65536 bytes", id="trailers"),
    ],
)
def test_whatever_comes_without_end_is_refused_at_once(first: bytes, again: bytes, why: str) -> None:
    """D27: 3 s and 64 KiB in all; interim answers alone were 240 to 460 MB."""
    flood = Flood(first, again)
    detail, seconds = refusal_of(flood)
    assert why in detail
    assert flood.sent < IN_BUFFERS
    assert seconds < 2.5


async def write(chunks: Any, writer: asyncio.StreamWriter) -> None:
    writer.write(chunks)
    await writer.drain()


def test_chunk_framing_counts_towards_the_64_kib() -> None:
    """D27: 60,000 bytes of a body in chunks of one byte are 360 KB on the wire."""
    chunks = CHUNKED + b"1\r\n \r\n" * 60000 + b"0\r\n\r\n"

    assert "larger than 65536 bytes" in refusal_of(partial(write, chunks))[0]


@pytest.mark.parametrize("count", [0, 1, INTERIM_ANSWERS])
async def test_a_few_interim_answers_are_passed_over(count: int) -> None:
    """RFC 9110 §15.2: a client must be able to read one or more before the final answer."""

    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(INTERIM * count + FINAL)
        await writer.drain()

    async def fetch() -> bytes:
        async with relying_party(write) as server:
            return await egress_to(server.port).fetch(server.url)

    assert await fetch() == b"{}"


async def test_an_answer_of_64_kib_in_all_is_taken_and_one_byte_more_is_not() -> None:
    """D27."""

    async def fetch(size: int) -> bytes:
        head = len(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n")
        async with relying_party(answer(b" " * (size - head))) as server:
            return await egress_to(server.port).fetch(server.url)

    assert len(await fetch(ANSWER_BYTES)) > ANSWER_BYTES - 100
    with pytest.raises(HttpClientError, match="larger than 65536 bytes"):
        await fetch(ANSWER_BYTES + 1)


def test_what_tls_keeps_to_itself_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """D27: session tickets never become bytes of an answer."""
    context = rp_server.server_context.__wrapped__(rp_server.NAME)
    context.num_tickets = 5000
    monkeypatch.setattr(rp_server, "server_context", lambda _: context)
    detail, seconds = refusal_of(answer())
    assert f"more than {WIRE_BYTES} bytes arrived" in detail
    assert seconds < 2.5


async def nothing(writer: asyncio.StreamWriter) -> None:
    await writer.drain()


def test_a_server_that_says_nothing_and_closes_is_refused() -> None:
    assert "rp.example: " in refusal_of(nothing)[0]


def test_an_offer_to_switch_protocols_is_refused() -> None:
    """RFC 9110 §15.2.2: nobody asked for it."""
    assert "RemoteProtocolError" in refusal_of(answer(b"", "101 Switching Protocols", "Upgrade: x"))[0]
