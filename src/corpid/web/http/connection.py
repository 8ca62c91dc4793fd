"""A caller's connection: its deadlines and its end (D47).

A connection holds no timer. It holds a deadline, which `Server` compares with the clock twice a second.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from corpid.rules.oauth.refusals import Reason
from corpid.web.http.connections import refusal
from corpid.web.http.flow_control import FlowControl
from corpid.web.http.request_reader import Reading, RequestReader
from corpid.web.http.requests import new_request_id

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Collection

    from starlette.types import ASGIApp

    from corpid.web.http.connections import ConnectionRegistry, Limits, RequestCount, ServerState

    Refused = Callable[[str, list[tuple[bytes, bytes]], int, str, Reason, str], None]
    """gets every refusal: the peer's address, what was read of the headers, status, request id, reason, description
    """


class Connection(RequestReader):
    """An HTTP/1.1 connection with the limits of D47."""

    def __init__(
        self,
        app: ASGIApp,
        server_state: ServerState,
        *,
        limits: Limits,
        in_progress: RequestCount,
        open_connections: ConnectionRegistry,
        refused: Refused,
        bodiless: Collection[str] = (),
        streamed: Collection[str] = (),
    ) -> None:
        super().__init__(
            app,
            server_state,
            limits=limits,
            in_progress=in_progress,
            bodiless=bodiless,
            streamed=streamed,
        )
        self._open_connections = open_connections
        self._refused = refused
        self.opening: asyncio.Task[None] | None = None
        """the steps before a caller can send a request: with TLS, the handshake"""
        self.deadline = self.loop.time() + limits.head_seconds
        self._unread_since = math.inf
        self._leaves_unread = False
        """whether the request's body is not read to its end"""
        self._pending: bytes | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.server_state.connections.add(self)
        self.transport = transport
        self.flow = FlowControl(transport)
        self.server, self.client = _address(transport, "sockname"), _address(transport, "peername")
        self.scheme = "https" if transport.get_extra_info("sslcontext") else "http"

    def connection_lost(self, exc: Exception | None) -> None:
        self.server_state.connections.discard(self)
        self.deadline = math.inf
        self._open_connections.closed(self)
        if self._running is not None and not self._running.response_complete:
            self._running.disconnect()
        self.pipeline.clear()
        self._running = None
        self.exchange = None  # type: ignore[assignment] # which refers to this object
        if self.is_made:
            self.flow.resume_writing()
        if exc is None:
            self.transport.close()
        self.parser = None  # type: ignore[assignment] # the same

    @property
    def is_made(self) -> bool:
        """True if it can be asked."""
        return self.transport is not None

    def drop(self) -> None:
        """End it at once, whatever it is doing."""
        if self.is_made:
            self.transport.abort()
        elif self.opening is not None:
            self.opening.cancel()

    def eof_received(self) -> bool:
        """Answer a half-closed caller's requests, then end the connection."""
        if self._streaming or not self._answering() or self.scheme == "https":
            return False
        self.exchange.keep_alive = False
        self._deaf = True
        return True

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        self._unread_since = self.loop.time()

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self._unread_since = math.inf

    def expire(self, now: float) -> None:
        """Close the connection if it exceeds a time limit.

        `now` is the event loop's time in seconds. Called about twice a second (D47).
        """
        if now - self._unread_since > self.limits.unread_seconds:
            self.transport.abort()
        elif now < self.deadline:
            return
        elif self._reading in {Reading.HEAD, Reading.BODY}:
            self._expire_request(now)
        elif self._reading is Reading.END or self.transport.is_closing():
            self.transport.abort()
        else:
            self.transport.close()
            self.deadline = now + self.limits.linger_seconds

    def take_one_request(self) -> None:
        """Answer the request that is coming, then end."""
        self._final = True

    def shutdown(self) -> None:
        """Take no further request; one that has begun is still answered."""
        self._final = True
        if self._answering():
            self.exchange.keep_alive = False
            self._deaf = not self._streaming
        elif self._reading is Reading.NOTHING and self.is_made:
            self.transport.close()

    def _expire_request(self, now: float) -> None:
        if self.flow.read_paused:  # it is we who do not read
            self._first_byte = now
            self.deadline = now + self.limits.head_seconds
            return
        if self._reading is Reading.HEAD:
            part, seconds = "headers", self.limits.head_seconds
        else:
            part = "body"
            seconds = self.limits.bulk_body_seconds if self._streaming else self.limits.body_seconds
        self.refuse(
            408,
            Reason.HTTP_TOO_SLOW,
            f"The {part} of the request did not arrive within {seconds:g} seconds of its first byte",
        )

    def _start(self) -> None:
        self._open_connections.request_started(self)
        super()._start()

    def _stream_body(self) -> None:
        super()._stream_body()
        self._leaves_unread = True

    def _end_stream(self) -> None:
        super()._end_stream()
        self._leaves_unread = False

    def _leave_body(self) -> None:
        super()._leave_body()
        self._leaves_unread = True

    def on_response_complete(self) -> None:
        now = self.loop.time()
        if self.transport.is_closing():
            self.deadline = now + self.limits.unread_seconds
            return
        self.flow.resume_reading()
        if self.pipeline:
            self.server_state.pipelined.add(self._begin_pipelined)
        else:
            self._await_request(now)

    def _begin_pipelined(self) -> None:
        """Begin the next pipelined request."""
        if not self.pipeline or self.transport.is_closing():  # the connection has ended, or is about to
            return
        exchange = self.pipeline.popleft()
        if exchange.disconnected:  # its body was refused while it waited
            self._await_request(self.loop.time())
        else:
            self._run(exchange)

    def _await_request(self, now: float) -> None:
        """Become idle: every request was answered."""
        self._open_connections.became_idle(self)
        if self._pending is not None:
            self._end_with(self._pending, self.limits.linger_seconds)
        elif self._reading is Reading.NOTHING:
            self.deadline = now + self.limits.idle_seconds

    def refuse(self, status: int, reason: Reason, description: str) -> None:
        """Answer with a small JSON error and close the connection.

        The answers that are due before it are sent first. Source: D32, D47
        """
        if self._reading is Reading.END:
            return
        reference = new_request_id()
        self._deaf = True
        self._reading = Reading.END
        self._body = bytearray()
        self.deadline = math.inf
        self._refused(self.client[0] if self.client else "", self.headers, status, reference, reason, description)
        answer = refusal(status, f"{description} (reference {reference})", self.server_state.default_headers)
        is_next = not self._answering()
        if self._streaming:
            is_next = not self.pipeline
            self._abandon()
        if not is_next:
            self._pending = answer
        else:
            self._end_with(answer, self.limits.linger_seconds)

    def _abandon(self) -> None:
        """Report to the application that the body is incomplete."""
        self._streaming = False
        if self.exchange.response_started:
            self.transport.abort()
        self.exchange.disconnect()

    def close(self) -> None:
        self.pipeline.clear()
        if not self._leaves_unread:
            self.transport.close()
            return
        self._streaming = False
        self._deaf = True
        self._reading = Reading.END
        limits = self.limits
        seconds = limits.unread_seconds if self.transport.get_write_buffer_size() else limits.linger_seconds
        self._end_with(b"", seconds)

    def _end_with(self, answer: bytes, seconds: float) -> None:
        """Half-close and let the caller read (RFC 9112 §9.6).

        Closing at once would reset what it has not read.
        """
        self.deadline = self.loop.time() + seconds
        if self.transport.is_closing():
            return
        self.transport.write(answer)
        if self.transport.can_write_eof():
            self.transport.write_eof()


def _address(transport: asyncio.Transport, which: str) -> tuple[str, int] | None:
    """An end of the connection; None if it is already gone."""
    try:
        found = transport.get_extra_info(which)
    except OSError:
        return None
    return (str(found[0]), int(found[1])) if found else None
