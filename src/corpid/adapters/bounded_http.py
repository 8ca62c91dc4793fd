"""One HTTP/1.1 GET on a connection of its own, of which a bounded number of bytes is read (D27).

HTTP clients bound the body at best. Here everything counts that arrives: interim answers, status lines, headers,
chunk framing and trailers, and below them, the records of TLS.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio
import h11
from anyio.abc import ByteStream
from anyio.streams.tls import TLSStream

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Mapping

    from anyio.abc import SocketStream

ANSWER_BYTES: Final = 65536
"""of HTTP: everything from the first status line to the end of the body"""
WIRE_BYTES: Final = 2 * ANSWER_BYTES
"""with TLS: a handshake and the frames of its records are allowed beside a full answer"""
INTERIM_ANSWERS: Final = 3
READ_BYTES: Final = 16384


class NotConnected(Exception):
    """No connection to this address, or no TLS on it; another address of the same host may do better."""


class AnswerRefused(Exception):
    """The server answered, but with something that is not taken; the text says what."""


async def get(
    address: str,
    port: int,
    *,
    server_name: str,
    target: bytes,
    headers: Mapping[str, str],
    tls: ssl.SSLContext | None,
    connect_seconds: float,
) -> bytes:
    """The body of the 200 answer to one GET of `target` at an address; `tls` None: plain HTTP.

    TLS is checked for `server_name`; `connect_seconds` is the time for TCP and TLS, the caller bounds the rest.
    Raises NotConnected, AnswerRefused. Source: RFC 9112, D27
    """
    async with _connected(address, port, server_name, tls, connect_seconds) as stream:
        try:
            return await _exchange(stream, target, headers)
        except h11.RemoteProtocolError as error:
            raise AnswerRefused(f"this is not an HTTP/1.1 answer (RemoteProtocolError: {error})") from error
        except (OSError, anyio.BrokenResourceError) as error:
            raise AnswerRefused(f"the connection broke ({_reason(error)})") from error


@asynccontextmanager
async def _connected(
    address: str, port: int, server_name: str, tls: ssl.SSLContext | None, seconds: float
) -> AsyncIterator[ByteStream]:
    tcp: SocketStream | None = None
    try:
        try:
            async with asyncio.timeout(seconds):
                tcp = await anyio.connect_tcp(address, port)
                counted = _Counted(tcp)
                stream = counted if tls is None else await _secured(counted, server_name, tls)
        except (OSError, anyio.BrokenResourceError, anyio.EndOfStream) as error:  # a TimeoutError is an OSError
            raise NotConnected(_reason(error)) from error
        yield stream
    finally:
        if tcp is not None:
            await tcp.aclose()


async def _secured(stream: ByteStream, server_name: str, tls: ssl.SSLContext) -> ByteStream:
    # Whether a body is whole is told by its framing: many servers end without a close_notify.
    return await TLSStream.wrap(stream, hostname=server_name, ssl_context=tls, standard_compatible=False)


class _Counted(ByteStream):
    """A TCP connection that ends when too much has arrived, whether TLS makes bytes of an answer of it or not."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._received = 0

    async def receive(self, max_bytes: int = READ_BYTES) -> bytes:
        received = await self._stream.receive(min(max_bytes, READ_BYTES))
        self._received += len(received)
        if self._received > WIRE_BYTES:
            raise AnswerRefused(f"more than {WIRE_BYTES} bytes arrived, TLS included")
        return received

    async def send(self, item: bytes) -> None:
        await self._stream.send(item)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _exchange(stream: ByteStream, target: bytes, headers: Mapping[str, str]) -> bytes:
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=ANSWER_BYTES)
    request = h11.Request(method=b"GET", target=target, headers=list(headers.items()))
    await stream.send((connection.send(request) or b"") + (connection.send(h11.EndOfMessage()) or b""))
    body, received, interim = bytearray(), 0, 0
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            octets = await _received(stream)
            received += len(octets)
            if received > ANSWER_BYTES:
                raise AnswerRefused(f"the answer is larger than {ANSWER_BYTES} bytes")
            connection.receive_data(octets)
        elif isinstance(event, h11.InformationalResponse):
            interim += 1
            if interim > INTERIM_ANSWERS:
                raise AnswerRefused(f"more than {INTERIM_ANSWERS} interim answers came (status {event.status_code})")
        elif isinstance(event, h11.Response):
            _judge(event)
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            return bytes(body)
        else:
            raise AnswerRefused("the connection was closed without an answer")


async def _received(stream: ByteStream) -> bytes:
    try:
        return await stream.receive(READ_BYTES)
    except anyio.EndOfStream:
        return b""


def _judge(answer: h11.Response) -> None:
    if answer.status_code != 200:
        raise AnswerRefused(f"the answer has status {answer.status_code}, expected 200 (redirects are not followed)")
    codings = [value.strip().lower() for name, value in answer.headers if name == b"content-encoding"]
    if codings not in ([], [b"identity"]):
        raise AnswerRefused("the answer is compressed, though the request asked for identity")


def _reason(error: BaseException) -> str:
    """What went wrong below: libraries wrap the system's error in one of their own."""
    cause = error.__cause__
    return _reason(cause) if isinstance(cause, OSError) else str(error) or "no answer"
