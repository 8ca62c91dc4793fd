"""A caller's connection: its states, the reading of requests, its end (D47).

The table of the states comes first. httptools parses, but bounds neither the size of a head nor of a body. A connection
does, and starts the application only once a request is complete, so that a slow or hostile caller costs one small
buffer and never a task. It holds no timer but a deadline, which `Server` compares with the clock twice a second.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from enum import IntEnum, auto
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import httptools

from corpid.rules.oauth.refusals import Reason
from corpid.web.http.connections import OVERLOADED, TOO_LARGE, ServerState
from corpid.web.http.exchange import Exchange, FlowControl, refusal
from corpid.web.http.requests import new_request_id, version_fault
from corpid.web.telemetry import access_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.types import Message, Receive, Scope, Send


class State(IntEnum):
    """The use of the bytes that arrive next."""

    IDLE = auto()
    """they begin a request"""
    HEAD = auto()
    """they belong to a head"""
    BODY = auto()
    """they belong to a body, which is collected here"""
    HELD = auto()
    """they belong to a large body; the application runs, has not asked for it, and nothing is read"""
    STREAM = auto()
    """they belong to a large body, which the application reads"""
    LAST = auto()
    """they are discarded: the last request was read, and its answer ends the connection"""
    UNREAD = auto()
    """the same, and the last request has a body that is not read"""
    REFUSED = auto()
    """they are discarded: a refusal is to be sent after the answers before it"""
    ENDING = auto()
    """they are discarded: everything was written, and the caller has a moment to read it"""
    CLOSED = auto()


class Event(IntEnum):
    """The cause of a move to another state."""

    FIRST_BYTE = auto()
    """a request begins"""
    HEAD_READ = auto()
    """a head is complete; its body, if there is one, is collected"""
    HEAD_OF_STREAM = auto()
    """a head is complete; the application reads the body itself"""
    HEAD_ALONE = auto()
    """a head is complete; its body is not read"""
    BODY_WANTED = auto()
    """the application begins to read a body itself"""
    COMPLETE = auto()
    """the request is complete, and another may follow"""
    LAST_COMPLETE = auto()
    """the request is complete, and none may follow"""
    NO_MORE = auto()
    """while an answer is due, the caller half-closes or the server stops"""
    REFUSAL = auto()
    """the request is malformed, too large or too slow"""
    END = auto()
    """the last answer was written, or no request came in time"""
    LOST = auto()
    """the connection is gone"""


_END: Final = {Event.END: State.ENDING, Event.LOST: State.CLOSED}
_REFUSED: Final = {Event.REFUSAL: State.REFUSED, **_END}
_READ: Final = {Event.COMPLETE: State.IDLE, Event.LAST_COMPLETE: State.LAST, **_REFUSED}

TRANSITIONS: Final[Mapping[State, Mapping[Event, State]]] = {
    State.IDLE: {Event.FIRST_BYTE: State.HEAD, Event.NO_MORE: State.LAST, **_REFUSED},
    State.HEAD: {
        Event.HEAD_READ: State.BODY,
        Event.HEAD_OF_STREAM: State.HELD,
        Event.HEAD_ALONE: State.UNREAD,
        Event.NO_MORE: State.LAST,
        **_REFUSED,
    },
    State.BODY: {Event.NO_MORE: State.LAST, **_READ},
    State.HELD: {Event.BODY_WANTED: State.STREAM, Event.NO_MORE: State.HELD, **_READ},
    State.STREAM: {Event.NO_MORE: State.STREAM, **_READ},
    State.LAST: {Event.NO_MORE: State.LAST, **_END},
    State.UNREAD: {Event.NO_MORE: State.UNREAD, **_END},
    State.REFUSED: {Event.NO_MORE: State.REFUSED, **_END},
    State.ENDING: {Event.NO_MORE: State.ENDING, **_END},
    State.CLOSED: {},
}
"""the next state, by state and event; any other event is a fault of this module"""

STREAMS: Final = frozenset({State.HELD, State.STREAM})
_BODIES: Final = STREAMS | {State.BODY}
DEAF: Final = frozenset({State.LAST, State.UNREAD, State.REFUSED, State.ENDING, State.CLOSED})
"""what arrives is discarded"""
_WITH_UNREAD_BYTES: Final = STREAMS | {State.UNREAD, State.REFUSED}
_ENDED: Final = frozenset({State.ENDING, State.CLOSED})

_FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})
_WATCHED: Final = _FRAMING | {b"expect"}
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class _Stop(Exception):
    """Ends the parser's work: the connection is deaf from here."""


class CallerConnection(asyncio.Protocol):
    """An HTTP/1.1 connection with the limits of D47.

    A request at one of the server's `bodiless` paths is complete with its head: a body is left unread, and the
    connection ends with the answer, since the start of a next request is unknown (RFC 9112 §9.6).

    The body of a POST at one of the `streamed` paths may be large (D59). The application starts with the head and
    reads the body when it wants it, which it does of callers that it knows. Until then nothing more is read of the
    connection; afterwards at most 64 KiB wait here for the application.
    """

    def __init__(self, server_state: ServerState) -> None:
        self.server_state = server_state
        self.limits = server_state.limits
        self.loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport = None  # type: ignore[assignment] # until the connection is made
        self.flow: FlowControl = None  # type: ignore[assignment] # the same
        self.opening: asyncio.Task[None] | None = None
        """the steps before a caller can send a request: with TLS, the handshake"""
        self.deadline = self.loop.time() + self.limits.head_seconds
        """when what it waits for must have come, in the loop's time"""
        self._state = State.IDLE
        self._is_final = False
        """whether the next request is the last"""
        self._unread_since = math.inf
        """when the caller stopped to read its answers"""
        self._thrown_away = 0
        self._refusal: bytes | None = None
        """that waits for the answers before it"""
        # the requests that were read
        self.exchange: Exchange = None  # type: ignore[assignment] # until the first request
        """of the last one"""
        self._running: Exchange | None = None
        """the one that is being answered, or that was last"""
        self._pipeline: deque[Exchange] = deque()
        """those that wait while an earlier one is answered"""
        # the request that is being read
        self.parser = _new_parser(self)
        self._framing = b""
        """the head that `_parse` goes on with"""
        self._raw = 0
        """bytes on the wire"""
        self._first_byte = 0.0
        self._is_pipelined = False
        """whether it began in the same bytes as the request before it, which `_raw` does not count"""
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._target: tuple[bytes, str, bytes] | None = None
        self._declared: int | None = None
        self._codings: list[bytes] = []
        self._expects_continue = False
        self._body = bytearray()
        self._streamed_bytes = 0

    def _move(self, event: Event) -> None:
        self._state = TRANSITIONS[self._state][event]

    # --- begin, half-close and loss ---

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.server_state.connections.add(self)
        self.transport = transport
        self.flow = FlowControl(transport)
        self.server, self.client = _address(transport, "sockname"), _address(transport, "peername")
        self.scheme = "https" if transport.get_extra_info("sslcontext") else "http"

    @property
    def is_made(self) -> bool:
        """True if it can be asked."""
        return self.transport is not None

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        self._unread_since = self.loop.time()

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self._unread_since = math.inf

    def eof_received(self) -> bool:
        """Answer a half-closed caller's requests, then end the connection."""
        if self._state in STREAMS or not self._is_answering() or self.scheme == "https":
            return False
        self._take_no_more()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._move(Event.LOST)
        self.server_state.connections.discard(self)
        self.deadline = math.inf
        self.server_state.open_connections.closed(self)
        if self._running is not None and not self._running.response_complete:
            self._running.disconnect()
        self._pipeline.clear()
        self._running = None
        self.exchange = None  # type: ignore[assignment] # which refers to this object
        if self.is_made:
            self.flow.resume_writing()
            if exc is None:
                self.transport.close()
        self.parser = None  # type: ignore[assignment] # the same

    def drop(self) -> None:
        """End it at once, whatever it is doing."""
        if self.is_made:
            self.transport.abort()
        elif self.opening is not None:
            self.opening.cancel()

    def take_one_request(self) -> None:
        """Answer the request that is coming, then end."""
        self._is_final = True

    def shutdown(self) -> None:
        """Take no further request; one that has begun is still answered."""
        self._is_final = True
        if self._is_answering():
            self._take_no_more()
        elif self._state is State.IDLE and self.is_made:
            self.transport.close()

    def _take_no_more(self) -> None:
        self.exchange.keep_alive = False
        self._move(Event.NO_MORE)
        if self._state is State.LAST:
            self.deadline = math.inf

    # --- deadlines ---

    def expire(self, now: float) -> None:
        """Close the connection if it exceeds a time limit.

        `now` is the event loop's time in seconds. Called about twice a second (D47).
        """
        if now - self._unread_since > self.limits.unread_seconds:
            self.transport.abort()
        elif now < self.deadline:
            return
        elif self._state is State.HEAD:
            self._expire_request(now, "headers", self.limits.head_seconds)
        elif self._state in _BODIES:
            is_streamed = self._state in STREAMS
            self._expire_request(
                now, "body", self.limits.bulk_body_seconds if is_streamed else self.limits.body_seconds
            )
        elif self._state is State.ENDING or self.transport.is_closing():
            self.transport.abort()
        else:
            self._move(Event.END)
            self.transport.close()
            self.deadline = now + self.limits.linger_seconds

    def _expire_request(self, now: float, part: str, seconds: float) -> None:
        if self.flow.read_paused:  # it is we who do not read
            self._first_byte = now
            self.deadline = now + self.limits.head_seconds
            return
        self.refuse(
            408,
            Reason.HTTP_TOO_SLOW,
            f"The {part} of the request did not arrive within {seconds:g} seconds of its first byte",
        )

    # --- reading: pieces of at most a head's size go through the parser, which calls the methods on_… ---

    def data_received(self, data: bytes) -> None:
        size = self.limits.head_bytes
        if len(data) <= size:
            self._feed(data)
            return
        view = memoryview(data)
        for start in range(0, len(data), size):
            self._feed(view[start : start + size])

    def _feed(self, chunk: bytes | memoryview) -> None:
        if self._state in DEAF:
            self._throw_away(len(chunk))
            return
        if self._state is State.IDLE:
            self._begin(is_pipelined=False)
        self._raw += len(chunk)
        try:
            self._parse(chunk)
        except (httptools.HttpParserError, UnicodeDecodeError):
            self.refuse(400, Reason.HTTP_MALFORMED, "This is not a well-formed HTTP/1.1 request")
        else:
            self._check_raw()

    def _throw_away(self, size: int) -> None:
        self._thrown_away += size
        if self._thrown_away > self.limits.linger_bytes:
            self.transport.abort()

    def _begin(self, *, is_pipelined: bool) -> None:
        self._move(Event.FIRST_BYTE)
        self._is_pipelined = is_pipelined
        self._headers = []
        self._raw = 0
        self._first_byte = self.loop.time()
        self.deadline = self._first_byte + self.limits.head_seconds

    def _parse(self, chunk: bytes | memoryview) -> None:
        """Parse the next bytes as if no upgrade were offered (RFC 9110 §7.8).

        The parser takes what follows for another protocol, a new one with a head that offers none for this request's
        body and further requests.
        """
        while chunk:
            try:
                self.parser.feed_data(chunk)
            except httptools.HttpParserUpgrade as upgrade:
                chunk = chunk[upgrade.args[0] :]
                head, self._framing = self._framing, b""
                self.parser = _new_parser(self)
                self.parser.feed_data(head)
            else:
                return

    def _check_raw(self) -> None:
        """Check conditions without a callback.

        An unfinished header, chunk extensions, unfinished trailers.
        """
        limits = self.limits
        if self._state is State.HEAD and self._raw > limits.head_bytes:
            self._refuse_head()
        elif self._state in _BODIES and self._raw > (
            limits.bulk_wire_bytes if self._state in STREAMS else limits.wire_bytes
        ):
            self._refuse_body()

    def on_message_begin(self) -> None:
        if self._state in DEAF:
            raise _Stop
        if self._state in _BODIES:  # a head that `_parse` has parsed again
            return
        if self._state is State.IDLE:
            self._begin(is_pipelined=True)
        self._url = b""
        self._headers = []
        self._target = None
        self._declared = None
        self._codings = []
        self._expects_continue = False
        self._body = bytearray()

    def on_url(self, url: bytes) -> None:
        if self._state is State.HEAD:
            self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._state is not State.HEAD:  # a trailer is no header, and one that is parsed again is known
            return
        name = name.lower()
        if name in _WATCHED:
            self._watch(name, value)
        self._headers.append((name, value))

    def _watch(self, name: bytes, value: bytes) -> None:
        if name == b"content-length":
            self._declared = int(value)
        elif name == b"transfer-encoding":
            self._codings.append(value.strip().lower())
        elif value.lower() == b"100-continue":
            self._expects_continue = True

    def on_headers_complete(self) -> None:
        if self._state is not State.HEAD:
            return
        self._check_head()
        if not self._url.startswith(b"/"):
            self._take_absolute_form()
        if self._ignores_body():
            self._leave_body()
            raise _Stop
        if self._declared is not None and self._declared > self._body_bytes:
            self._refuse_announced()
            raise _Stop
        if self.parser.should_upgrade():
            self._offered_upgrade()
        if self._is_streamed():
            self._stream_body()
            return
        self._move(Event.HEAD_READ)
        self.deadline = self._first_byte + self.limits.body_seconds
        if self._expects_continue and self._announces_body and not self._is_answering():
            self.transport.write(_CONTINUE)  # while an earlier answer is due, the caller waits or sends anyway

    def on_body(self, body: bytes) -> None:
        if self._state in STREAMS:
            self._streamed_bytes += len(body)
            if self._streamed_bytes > self.limits.bulk_body_bytes:
                self._refuse_body()
                raise _Stop
            if not self.exchange.response_complete:
                self.exchange.take_body(body)
            return
        self._body += body
        if len(self._body) > self.limits.body_bytes:
            self._refuse_body()
            raise _Stop

    def on_message_complete(self) -> None:
        if self._framing:  # the parser left the body out
            return
        if self._state in STREAMS:
            self._end_stream()
        else:
            self._complete()

    # --- what a head says ---

    def _check_head(self) -> None:
        limits = self.limits
        too_many_fields = len(self._headers) > limits.header_fields
        if too_many_fields or (
            (self._is_pipelined or self._raw > limits.head_bytes) and self._head_size() > limits.head_bytes
        ):
            self._refuse_head()
            raise _Stop
        if wrong := version_fault(self.parser.get_http_version()):
            self.refuse(*wrong)
            raise _Stop
        if b",".join(self._codings) not in {b"", b"chunked"} and self._codings[-1].endswith(b"chunked"):
            self.refuse(
                501,
                Reason.HTTP_NOT_SUPPORTED,
                "A body may be chunked and nothing else: send it without another transfer coding",
            )
            raise _Stop

    def _head_size(self) -> int:
        fields = sum(len(name) + len(value) + 4 for name, value in self._headers)
        return len(self.parser.get_method()) + len(self._url) + len(b"  HTTP/1.1\r\n\r\n") + fields

    def _take_absolute_form(self) -> None:
        """Let the target's own authority win over the Host header.

        `OPTIONS *` names none.
        """
        if self._url == b"*" and self.parser.get_method() == b"OPTIONS":
            self._target = b"*", "*", b""
            return
        parsed: Any = httptools.parse_url(self._url)  # its stub knows nothing of absent parts
        if not parsed.host or not parsed.path:
            self.refuse(400, Reason.HTTP_MALFORMED, "The request target must be a path")
            raise _Stop
        port = b"" if parsed.port is None else b":%d" % parsed.port
        self._headers[:] = [field for field in self._headers if field[0] != b"host"]
        self._headers.append((b"host", parsed.host + port))

    def _offered_upgrade(self) -> None:
        if self.parser.get_method() == b"CONNECT":
            self.refuse(400, Reason.HTTP_NOT_SUPPORTED, "This is no proxy: send a request other than CONNECT")
            raise _Stop
        self._framing = _framing_head(self.parser, self._headers)

    def _parsed_target(self) -> tuple[bytes, str, bytes]:
        """The path as it was sent, the decoded path, and the query (RFC 3986 §6.2.2.2)."""
        if self._target is None:
            parsed: Any = httptools.parse_url(self._url)
            raw_path = parsed.path or b""
            path = raw_path.decode("ascii")
            self._target = raw_path, unquote(path) if "%" in path else path, parsed.query or b""
        return self._target

    @property
    def _announces_body(self) -> bool:
        return bool(self._declared or self._codings)

    def _ignores_body(self) -> bool:
        """Return whether the coming body is not read."""
        bodiless = self.server_state.bodiless
        return bool(bodiless) and self._announces_body and self._parsed_target()[1] in bodiless

    def _is_streamed(self) -> bool:
        """Return whether the application reads the coming body itself."""
        streamed = self.server_state.streamed
        if not streamed or not self._announces_body or self.parser.get_method() != b"POST":
            return False
        return self._parsed_target()[1] in streamed

    @property
    def _body_bytes(self) -> int:
        """The most bytes of the body of this request."""
        return self.limits.bulk_body_bytes if self._is_streamed() else self.limits.body_bytes

    # --- running: a complete request, one whose body is left, one whose body the application reads ---

    def _complete(self) -> None:
        """Run the application: the request is complete.

        No time limit of the caller's runs any more.
        """
        self.deadline = math.inf
        self._start()
        exchange = self.exchange
        exchange.body = self._body
        exchange.end_body()
        self._end_reading()

    def _leave_body(self) -> None:
        """Answer now.

        No 100 Continue: what was announced need not be sent (RFC 9110 §10.1.1).
        """
        self._move(Event.HEAD_ALONE)
        self.deadline = math.inf
        self._start()
        self.exchange.keep_alive = False
        self.exchange.end_body()
        self.flow.pause_reading()

    def _refuse_announced(self) -> None:
        """Refuse a body that is too large: a form on a page."""
        if self.parser.get_method() == b"POST" and self._parsed_target()[1].startswith(self.server_state.forms):
            self._leave_body()
            self.exchange.scope["state"][TOO_LARGE] = True
        else:
            self._refuse_body()

    def _stream_body(self) -> None:
        """Run the application, and read no further before it reads.

        The connection ends with the answer if that comes before the end of the body (RFC 9112 §9.6).
        """
        self._move(Event.HEAD_OF_STREAM)
        self._streamed_bytes = 0
        self.deadline = math.inf
        self._start()
        self.exchange.keep_alive = False
        self.flow.pause_reading()

    async def _reading_on_demand(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def read() -> Message:
            self._want_body()
            return await receive()

        await self.server_state.app(scope, read, send)

    def _want_body(self) -> None:
        """Start the time limit of the body.

        The application reads it now.
        """
        if self._state is not State.HELD:
            return
        self._move(Event.BODY_WANTED)
        self.deadline = self.loop.time() + self.limits.bulk_body_seconds
        if self._expects_continue:
            self.transport.write(_CONTINUE)

    def _end_stream(self) -> None:
        """The body is complete: the connection may take a next request."""
        self.deadline = math.inf
        self.exchange.end_body()
        if not self.exchange.response_started:
            self.exchange.keep_alive = self._keeps_alive()
        self._end_reading()

    def _end_reading(self) -> None:
        exchange = self.exchange
        if self._is_final or len(self._pipeline) >= self.limits.pipelined:
            exchange.keep_alive = False
        self._move(Event.COMPLETE if exchange.keep_alive else Event.LAST_COMPLETE)

    def _keeps_alive(self) -> bool:
        """Return whether the caller may send another request (RFC 9112 §9.3)."""
        return self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()

    def _start(self) -> None:
        """Make the request's exchange.

        It begins at once unless an earlier one is being answered.
        """
        self.server_state.open_connections.request_started(self)
        raw_path, path, query = self._parsed_target()
        scope: Scope = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": "1.0" if self.parser.get_http_version() == "1.0" else "1.1",
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            "headers": self._headers,
            "state": {},
            "method": self.parser.get_method().decode("ascii"),
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
        }
        earlier: Exchange | None = self.exchange
        exchange = self.exchange = Exchange(self, scope, keep_alive=self._keeps_alive())
        if earlier is None or earlier.response_complete:
            self._run(exchange)
        else:
            self.flow.pause_reading()
            self._pipeline.append(exchange)

    def _run(self, exchange: Exchange) -> None:
        """Start the exchange's task, counted at once.

        It may not run for a while.
        """
        server = self.server_state
        self._running = exchange
        is_counted = server.in_progress < self.limits.concurrent_requests
        app = server.app
        if not is_counted:
            exchange.scope["state"][OVERLOADED] = True
        else:
            server.in_progress += 1
            if self._state in STREAMS and exchange is self.exchange:
                app = self._reading_on_demand
        task = self.loop.create_task(exchange.run(app, is_counted=is_counted))
        task.add_done_callback(server.tasks.discard)
        server.tasks.add(task)

    def _is_answering(self) -> bool:
        exchange: Exchange | None = self.exchange
        return exchange is not None and not exchange.response_complete

    # --- after an answer ---

    def on_response_complete(self) -> None:
        """Go on with the next request, or wait for it."""
        now = self.loop.time()
        if self.transport.is_closing():
            self.deadline = now + self.limits.unread_seconds
            return
        self.flow.resume_reading()
        if self._pipeline:
            self.server_state.pipelined.add(self._begin_pipelined)
        else:
            self._await_request(now)

    def _begin_pipelined(self) -> None:
        """Begin the next pipelined request."""
        if not self._pipeline or self.transport.is_closing():  # the connection has ended, or is about to
            return
        exchange = self._pipeline.popleft()
        if exchange.disconnected:  # its body was refused while it waited
            self._await_request(self.loop.time())
        else:
            self._run(exchange)

    def _await_request(self, now: float) -> None:
        """Become idle: every request was answered."""
        self.server_state.open_connections.became_idle(self)
        if self._refusal is not None:
            self._end_with(self._refusal, self.limits.linger_seconds)
        elif self._state is State.IDLE:
            self.deadline = now + self.limits.idle_seconds

    # --- refusals and the end ---

    def _refuse_head(self) -> None:
        self.refuse(
            431,
            Reason.HTTP_HEAD_TOO_LARGE,
            f"Request line and headers together may have {self.limits.head_bytes} bytes "
            f"and {self.limits.header_fields} fields",
        )

    def _refuse_body(self) -> None:
        self.refuse(413, Reason.HTTP_BODY_TOO_LARGE, f"A request body may have {self._body_bytes} bytes here")

    def refuse(self, status: int, reason: Reason, description: str) -> None:
        """Answer with a small JSON error and close the connection.

        The answers that are due before it are sent first. A deaf connection refuses nothing. Source: D32, D47
        """
        if self._state in DEAF:
            return
        is_next = not self._is_answering()
        if self._state in STREAMS:
            is_next = not self._pipeline
            self._abandon_stream()
        self._move(Event.REFUSAL)
        self._body = bytearray()
        self.deadline = math.inf
        server = self.server_state
        reference = new_request_id(server.moment)
        address = server.addresses.caller_address(self.client[0] if self.client else "", self._headers)
        access_log.refused(address, status, reference, reason, description)
        answer = refusal(status, f"{description} (reference {reference})", server.default_headers)
        if is_next:
            self._end_with(answer, self.limits.linger_seconds)
        else:
            self._refusal = answer

    def _abandon_stream(self) -> None:
        """Report to the application that the body is incomplete."""
        if self.exchange.response_started:
            self.transport.abort()
        self.exchange.disconnect()

    def close(self) -> None:
        """End the connection after what was written."""
        self._pipeline.clear()
        self._refusal = None
        if self._state in _ENDED:
            return
        if self._state in _WITH_UNREAD_BYTES:
            limits = self.limits
            waits = self.transport.get_write_buffer_size()
            self._end_with(b"", limits.unread_seconds if waits else limits.linger_seconds)
        else:
            self._move(Event.END)
            self.transport.close()

    def _end_with(self, answer: bytes, seconds: float) -> None:
        """Half-close and let the caller read (RFC 9112 §9.6).

        Closing at once would reset what it has not read.
        """
        self._move(Event.END)
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


def _new_parser(protocol: object) -> httptools.HttpRequestParser:
    """A parser that calls this object.

    It does not judge a version, and what comes after a request that its caller called the last is no error.
    """
    parser = httptools.HttpRequestParser(protocol)
    parser.set_dangerous_leniencies(lenient_data_after_close=True, lenient_version=True)
    return parser


def _framing_head(parser: httptools.HttpRequestParser, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The head of the parsed request without an offered upgrade.

    It has nothing but what tells where the body and the connection end.
    """
    fields = [field for field in headers if field[0] in _FRAMING]
    if not parser.should_keep_alive():
        fields.append((b"connection", b"close"))
    lines = b"".join([b"%b: %b\r\n" % field for field in fields])
    return b"%b / HTTP/%b\r\n%b\r\n" % (parser.get_method(), parser.get_http_version().encode(), lines)
