"""One request and its response, as an ASGI application sees them.

With the pauses of their connection, and the response of one that breaks a limit.
Source: ASGI 3.0 (HTTP connection scope), RFC 9112
"""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from corpid.web.telemetry import access_log

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Scope

    from corpid.web.http.connections import ServerState

_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}
_STATUS_LINES: Final = {
    status: f"HTTP/1.1 {status} {_PHRASES.get(status, '')}\r\n".encode() for status in range(100, 600)
}
"""by status"""
HIGH_WATER_BYTES: Final = 65536
"""of a body that waits for the application; beyond them nothing more is read"""
_UNFIT_IN_NAME: Final = re.compile(rb'[\x00-\x20\x7f()<>@,;:\[\]={}\\"]')
_UNFIT_IN_VALUE: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_LAST_RESORT: Final = b"Internal Server Error"
_WITHOUT_BODY: Final = frozenset({204, 304})


class Peer(Protocol):
    """The connection of an exchange."""

    transport: asyncio.Transport
    flow: FlowControl
    server_state: ServerState

    def close(self) -> None:
        """End the connection after what was written."""

    def on_response_complete(self) -> None:
        """The whole response was written."""


class Exchange:
    """A request, and the response that the application gives.

    The head of a response is written with the first part of its body, in one system call.
    """

    __slots__ = (
        "_bytes_left", "_changed", "_chunked", "_event", "_head", "_peer", "body", "disconnected", "keep_alive", "more_body",
        "response_complete", "response_started", "scope",
    )  # fmt: skip

    def __init__(self, peer: Peer, scope: Scope, *, keep_alive: bool) -> None:
        self._peer = peer
        self.scope = scope
        self.keep_alive = keep_alive
        """whether the connection can take another request after the response"""
        self.disconnected = False
        self.body = bytearray()
        self.more_body = True
        self.response_started = False
        self.response_complete = False
        self._event: asyncio.Event | None = None
        self._changed = False
        """whether `receive` has something to return"""
        self._head = b""
        """of the response, until it is written"""
        self._bytes_left = 0
        """bytes of the body to come, by Content-Length"""
        self._chunked = False

    async def run(self, app: ASGIApp, *, is_counted: bool) -> None:
        """Call the application; if the request is counted, end that.

        A response that it leaves unfinished ends the connection, so that the caller does not take it for whole.
        """
        try:
            await app(self.scope, self.receive, self.send)
        except asyncio.CancelledError:  # by a stop that does not wait; the log's line of the request says so
            self._peer.close()
            raise
        except BaseException as error:  # noqa: BLE001 - the task ends here, and its connection must not stay open
            access_log.log().error("Exception in ASGI application", exc_info=error)
            await self._end_unfinished()
        else:
            if not self.response_complete and not self.disconnected:
                access_log.log().error("ASGI application returned without completing its response")
                await self._end_unfinished()
        finally:
            if is_counted:
                self._peer.server_state.in_progress -= 1

    async def _end_unfinished(self) -> None:
        if self.response_started:
            if self._head:
                self._peer.transport.write(self._head)
            self._peer.close()
            return
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", b"%d" % len(_LAST_RESORT)),
            (b"connection", b"close"),
        ]
        await self.send({"type": "http.response.start", "status": 500, "headers": headers})
        await self.send({"type": "http.response.body", "body": _LAST_RESORT})

    def disconnect(self) -> None:
        """The caller is gone: nothing more is read or written."""
        self.disconnected = True
        self.notify()

    def take_body(self, part: bytes) -> None:
        """Take a part of the body, and wake a waiting application."""
        self.body += part
        if len(self.body) > HIGH_WATER_BYTES:
            self._peer.flow.pause_reading()
        self.notify()

    def end_body(self) -> None:
        if not self.response_complete:
            self.more_body = False
            self.notify()

    def notify(self) -> None:
        """Let a waiting `receive` look again."""
        self._changed = True
        if self._event is not None:
            self._event.set()

    async def receive(self) -> Message:
        """ASGI's receive."""
        if not self.disconnected and not self.response_complete:
            self._peer.flow.resume_reading()
            if not self._changed:
                self._event = self._event or asyncio.Event()
                await self._event.wait()
            self._changed = False
            if self._event is not None:
                self._event.clear()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        body, self.body = bytes(self.body), bytearray()
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    async def send(self, message: Message) -> None:
        """ASGI's send."""
        flow = self._peer.flow
        if flow.write_paused and not self.disconnected:
            await flow.drain()
        if self.disconnected:
            return
        expected = "http.response.body" if self.response_started else "http.response.start"
        if self.response_complete or message["type"] != expected:
            raise RuntimeError(f"{message['type']} was sent instead of {expected}, or after the response")
        if self.response_started:
            self._write(message.get("body", b""), more=message.get("more_body", False))
        else:
            self._begin(message["status"], message.get("headers", ()))

    def _begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.response_started = True
        lines, closes, chunked = [_STATUS_LINES[status], self._peer.server_state.default_headers], False, True
        names = values = b""
        for name, value in headers:
            names += name
            values += value
            lines += (name, b": ", value, b"\r\n")
            if name == b"content-length":
                self._bytes_left, chunked = int(value), False
            elif name == b"connection":
                closes = b"close" in value.lower()
        # Nothing of ours writes such a field; a fault that did could split the response (RFC 9112 §11.1).
        if _UNFIT_IN_NAME.search(names) or _UNFIT_IN_VALUE.search(values):
            raise RuntimeError("a header field has a character that HTTP does not allow there")
        if closes:
            self.keep_alive = False
        elif not self.keep_alive:
            lines.append(b"connection: close\r\n")
        if chunked and self.scope["method"] != "HEAD" and status not in _WITHOUT_BODY:
            self._chunked = True
            lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n")
        self._head = b"".join(lines)

    def _write(self, body: bytes, *, more: bool) -> None:
        if self.scope["method"] == "HEAD":
            body, self._bytes_left = b"", 0
        elif self._chunked:
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + (b"" if more else b"0\r\n\r\n")
        else:
            self._bytes_left -= len(body)
            if self._bytes_left < 0:
                raise RuntimeError("the response is longer than its Content-Length")
        self._peer.transport.write(self._head + body)
        self._head = b""
        if more:
            return
        if self._bytes_left:
            raise RuntimeError("the response is shorter than its Content-Length")
        self.response_complete = True
        self.notify()
        if not self.keep_alive:
            self._peer.close()
        self._peer.on_response_complete()


def refusal(status: int, description: str, default_headers: bytes) -> bytes:
    """A whole response: a small JSON error that ends the connection.

    Source: D32, D47
    """
    body = msgspec.json.encode({"error": "invalid_request", "error_description": description})
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"connection", b"close"),
    ]
    lines = [name + b": " + value + b"\r\n" for name, value in headers]
    return b"".join([_STATUS_LINES[status], default_headers, *lines, b"\r\n", body])


class FlowControl:
    """The pauses of a connection's reading and writing.

    The transport says when writing pauses, the connection when reading does. Source: D47
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._writable = asyncio.Event()
        self._writable.set()
        self.read_paused = False

    @property
    def write_paused(self) -> bool:
        """True if nothing more can be written for now."""
        return not self._writable.is_set()

    async def drain(self) -> None:
        """Wait until more can be written."""
        await self._writable.wait()

    def pause_reading(self) -> None:
        """Read nothing more; again changes nothing."""
        if not self.read_paused:
            self.read_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on; again changes nothing."""
        if self.read_paused:
            self.read_paused = False
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        """Let writers wait."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let writers go on; again changes nothing."""
        self._writable.set()
