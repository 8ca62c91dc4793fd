"""Reading of a connection's requests, with bounded memory (D47).

httptools parses; it bounds neither the size of a head nor of a body. This class does, and it starts
the application only once a request is complete, so that a slow or hostile caller costs one small
buffer and never a task.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from enum import Enum, auto
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import httptools

from corpid.rules.oauth.refusals import Reason
from corpid.web.http.connections import OVERLOADED
from corpid.web.http.exchange import Exchange
from corpid.web.http.requests import version_fault

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from corpid.web.http.connections import Limits, RequestCount, ServerState
    from corpid.web.http.flow_control import FlowControl


class Reading(Enum):
    """The part of a request that the connection expects next."""

    NOTHING = auto()
    """a next request, whenever it likes"""
    HEAD = auto()
    BODY = auto()
    END = auto()
    """refused: further bytes are discarded"""


class _Stop(Exception):
    """Ends the parser's work; the connection is deaf from here."""


_FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})
WATCHED: Final = frozenset({b"content-length", b"expect", b"transfer-encoding"})
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}


class RequestReader(asyncio.Protocol):
    """The reading side of a connection.

    `deadline` is when what it reads must be complete, in the loop's time.

    A request at one of the paths `bodiless` is complete with its head: a body is left unread, and the connection
    ends with the answer, since the start of a next request is unknown (RFC 9112 §9.6).

    The body of a POST at one of the paths `streamed` may be large (D59). The application starts with the head and
    reads the body when it wants it, which it does of callers that it knows. Until then nothing more is read of the
    connection; afterwards at most 64 KiB wait here for the application.
    """

    def __init__(
        self,
        app: ASGIApp,
        server_state: ServerState,
        *,
        limits: Limits,
        in_progress: RequestCount,
        bodiless: Collection[str] = (),
        streamed: Collection[str] = (),
    ) -> None:
        self.app = app
        self.loop = asyncio.get_running_loop()
        self.parser = _new_parser(self)
        self.server_state = server_state
        self.limits = limits
        self.transport: asyncio.Transport = None  # type: ignore[assignment] # until the connection is made
        self.flow: FlowControl = None  # type: ignore[assignment] # the same
        self.server: tuple[str, int | None] | None = None
        self.client: tuple[str, int] | None = None
        self.scheme = "http"
        self.pipeline: deque[Exchange] = deque()
        """requests that wait while an earlier one is answered"""
        self.exchange: Exchange = None  # type: ignore[assignment] # the same, and the first request
        """of the last request"""
        self._running: Exchange | None = None
        """the one that is being answered, or that was last"""
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.expect_100_continue = False
        self._tasks = server_state.tasks
        self._bodiless = bodiless
        self._streamed = streamed
        self._in_progress = in_progress
        self.deadline = math.inf
        self._reading = Reading.NOTHING
        self._deaf = False
        self._final = False
        self._first_byte = 0.0
        self._raw = 0
        self._pipelined = False
        self._declared: int | None = None
        self._chunked = False
        self._codings: list[bytes] = []
        self._body = bytearray()
        self._target: tuple[bytes, str, bytes] | None = None
        self._framing = b""
        """the head that `_parse` goes on with"""
        self._thrown_away = 0
        self._streaming = False
        """whether the application reads a body that is not complete"""
        self._streamed_bytes = 0
        self._announces_continue = False
        self._keeps_alive = False

    def refuse(self, status: int, reason: Reason, description: str) -> None:
        """End the connection with this answer; `Connection` does it."""
        raise NotImplementedError

    def close(self) -> None:
        """End the connection after what was written."""
        self.transport.close()

    def on_response_complete(self) -> None:
        """The whole response was written; `Connection` goes on."""

    def data_received(self, data: bytes) -> None:
        size = self.limits.head_bytes
        if len(data) <= size:
            self._feed(data)
            return
        view = memoryview(data)
        for start in range(0, len(data), size):
            self._feed(view[start : start + size])

    def _feed(self, chunk: bytes | memoryview) -> None:
        if self._deaf:
            self._throw_away(len(chunk))
            return
        if self._reading is Reading.NOTHING:
            self._begin()
            self._pipelined = False
        self._raw += len(chunk)
        try:
            self._parse(chunk)
        except (httptools.HttpParserError, UnicodeDecodeError):
            if not self._deaf:
                self.refuse(400, Reason.HTTP_MALFORMED, "This is not a well-formed HTTP/1.1 request")
        else:
            self._check_raw()

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

    def _begin(self) -> None:
        self._reading = Reading.HEAD
        self.headers = []
        self._raw = 0
        self._first_byte = self.loop.time()
        self.deadline = self._first_byte + self.limits.head_seconds

    def _check_raw(self) -> None:
        """Check conditions without a callback.

        An unfinished header, chunk extensions, unfinished trailers.
        """
        if self._reading is Reading.HEAD and self._raw > self.limits.head_bytes:
            self._refuse_head()
        elif self._reading is Reading.BODY and self._raw > self._wire_bytes:
            self._refuse_body()

    def _throw_away(self, size: int) -> None:
        self._thrown_away += size
        if self._thrown_away > self.limits.linger_bytes:
            self.transport.abort()

    def on_message_begin(self) -> None:
        if self._deaf:
            raise _Stop
        if self._reading is Reading.BODY:  # a head that `_parse` has parsed again
            return
        if self._reading is Reading.NOTHING:  # in the same bytes as the request before it
            self._begin()
            self._pipelined = True
        self.url = b""
        self.expect_100_continue = False
        self.headers = []
        self._target = None
        self._declared = None
        self._chunked = False
        self._codings = []
        self._body = bytearray()

    def on_url(self, url: bytes) -> None:
        if self._reading is not Reading.BODY:
            self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._reading is Reading.BODY:  # a trailer is no header, and one that is parsed again is known
            return
        name = name.lower()
        if name in WATCHED:
            self._watch(name, value)
        self.headers.append((name, value))

    def _watch(self, name: bytes, value: bytes) -> None:
        if name == b"content-length":
            self._declared = int(value)
        elif name == b"transfer-encoding":
            self._chunked = True
            self._codings.append(value.strip().lower())
        elif value.lower() == b"100-continue":
            self.expect_100_continue = True

    def on_headers_complete(self) -> None:
        if self._reading is Reading.BODY:
            return
        self._check_head()
        if not self.url.startswith(b"/"):
            self._take_absolute_form()
        self._reading = Reading.BODY
        self.deadline = self._first_byte + self.limits.body_seconds
        if self._ignores_body():
            self._leave_body()
            raise _Stop
        if self.parser.should_upgrade():
            self._offered_upgrade()
        if self._is_streamed():
            self._stream_body()
            return
        if self.expect_100_continue:
            self._continue()

    def _check_head(self) -> None:
        limits = self.limits
        too_many_fields = len(self.headers) > limits.header_fields
        if too_many_fields or (
            (self._pipelined or self._raw > limits.head_bytes) and self._head_size() > limits.head_bytes
        ):
            self._refuse_head()
            raise _Stop
        if self._declared is not None and self._declared > self._body_bytes and not self._ignores_body():
            self._refuse_body()
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
        fields = sum(len(name) + len(value) + 4 for name, value in self.headers)
        return len(self.parser.get_method()) + len(self.url) + len(b"  HTTP/1.1\r\n\r\n") + fields

    def _take_absolute_form(self) -> None:
        """Let the target's own authority win over the Host header.

        `OPTIONS *` names none.
        """
        if self.url == b"*" and self.parser.get_method() == b"OPTIONS":
            self._target = b"*", "*", b""
            return
        parsed: Any = httptools.parse_url(self.url)  # its stub knows nothing of absent parts
        if not parsed.host or not parsed.path:
            self.refuse(400, Reason.HTTP_MALFORMED, "The request target must be a path")
            raise _Stop
        port = b"" if parsed.port is None else b":%d" % parsed.port
        self.headers[:] = [field for field in self.headers if field[0] != b"host"]
        self.headers.append((b"host", parsed.host + port))

    def _ignores_body(self) -> bool:
        """Return whether the coming body is not read."""
        announced = self._declared or self._chunked
        return bool(announced and self._bodiless) and self._parsed_target()[1] in self._bodiless

    def _is_streamed(self) -> bool:
        """Return whether the application reads the coming body itself."""
        announced = self._declared or self._chunked
        if not announced or not self._streamed or self.parser.get_method() != b"POST":
            return False
        return self._parsed_target()[1] in self._streamed

    def _parsed_target(self) -> tuple[bytes, str, bytes]:
        """The path as it was sent, the decoded path, and the query (RFC 3986 §6.2.2.2)."""
        if self._target is None:
            parsed: Any = httptools.parse_url(self.url)
            raw_path = parsed.path or b""
            path = raw_path.decode("ascii")
            self._target = raw_path, unquote(path) if "%" in path else path, parsed.query or b""
        return self._target

    @property
    def _body_bytes(self) -> int:
        """The most bytes of the body of this request."""
        return self.limits.bulk_body_bytes if self._is_streamed() else self.limits.body_bytes

    @property
    def _wire_bytes(self) -> int:
        """The most bytes of this request on the wire."""
        return self.limits.bulk_wire_bytes if self._streaming else self.limits.wire_bytes

    def _stream_body(self) -> None:
        """Run the application, and read no further before it reads.

        The connection ends with the answer if that comes before the end of the body (RFC 9112 §9.6).
        """
        self._streaming = True
        self._streamed_bytes = 0
        self.deadline = math.inf
        self._announces_continue, self.expect_100_continue = self.expect_100_continue, False
        self._start()
        self._keeps_alive, self.exchange.keep_alive = self.exchange.keep_alive, False
        self.flow.pause_reading()

    async def _reading_on_demand(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def read() -> Message:
            self._want_body()
            return await receive()

        await self.app(scope, read, send)

    def _want_body(self) -> None:
        """Start the time limit of the body.

        The application reads it now.
        """
        if not self._streaming or self.deadline < math.inf:
            return
        self.deadline = self.loop.time() + self.limits.bulk_body_seconds
        if self._announces_continue:
            self._announces_continue = False
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _end_stream(self) -> None:
        """The body is complete: the connection may take a next request."""
        self._streaming = False
        self._reading = Reading.NOTHING
        self.deadline = math.inf
        self.exchange.end_body()
        exchange = self.exchange
        if not exchange.response_started:
            exchange.keep_alive = self._keeps_alive and not self._final and len(self.pipeline) < self.limits.pipelined
        self._deaf = not exchange.keep_alive

    def _leave_body(self) -> None:
        """Answer now.

        No 100 Continue: what was announced need not be sent (RFC 9110 §10.1.1).
        """
        self.expect_100_continue = False
        self._final = True
        self._dispatch()
        self._reading = Reading.END
        self.flow.pause_reading()

    def _offered_upgrade(self) -> None:
        if self.parser.get_method() == b"CONNECT":
            self.refuse(400, Reason.HTTP_NOT_SUPPORTED, "This is no proxy: send a request other than CONNECT")
            raise _Stop
        self._framing = _framing_head(self.parser, self.headers)

    def _continue(self) -> None:
        """Send 100 Continue, unless an earlier response is pending.

        Then the caller waits or sends anyway.
        """
        self.expect_100_continue = False
        if (self._declared or self._chunked) and not self._answering():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        if self._streaming:
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
        (self._end_stream if self._streaming else self._dispatch)()

    def _dispatch(self) -> None:
        """Run the application: the request is complete.

        No time limit of the caller's runs any more.
        """
        self._reading = Reading.NOTHING
        self.deadline = math.inf
        self._start()
        exchange = self.exchange
        exchange.body = self._body
        exchange.end_body()
        if self._final or len(self.pipeline) >= self.limits.pipelined:
            exchange.keep_alive = False
        self._deaf = not exchange.keep_alive

    def _start(self) -> None:
        """Make the request's exchange.

        It begins at once unless an earlier one is being answered.
        """
        raw_path, path, query = self._parsed_target()
        version = "1.0" if self.parser.get_http_version() == "1.0" else "1.1"
        scope: Scope = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            "headers": self.headers,
            "state": {},
            "method": self.parser.get_method().decode("ascii"),
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
        }
        earlier: Exchange | None = self.exchange
        exchange = self.exchange = Exchange(
            self, scope, keep_alive=version != "1.0" and self.parser.should_keep_alive()
        )
        if earlier is None or earlier.response_complete:
            self._run(exchange)
        else:
            self.flow.pause_reading()
            self.pipeline.append(exchange)

    def _run(self, exchange: Exchange) -> None:
        """Start the exchange's task, counted at once.

        It may not run for a while.
        """
        app = self.app
        self._running = exchange
        if self._in_progress.taken >= self.limits.concurrent_requests:
            exchange.scope["state"][OVERLOADED] = True
        else:
            exchange.count(self._in_progress)
            if self._streaming and exchange is self.exchange:
                app = self._reading_on_demand
        task = self.loop.create_task(exchange.run(app))
        task.add_done_callback(self._tasks.discard)
        self._tasks.add(task)

    def _answering(self) -> bool:
        exchange: Exchange | None = self.exchange
        return exchange is not None and not exchange.response_complete

    def _refuse_head(self) -> None:
        self.refuse(
            431,
            Reason.HTTP_HEAD_TOO_LARGE,
            f"Request line and headers together may have {self.limits.head_bytes} bytes "
            f"and {self.limits.header_fields} fields",
        )

    def _refuse_body(self) -> None:
        most = self.limits.bulk_body_bytes if self._streaming or self._is_streamed() else self.limits.body_bytes
        self.refuse(413, Reason.HTTP_BODY_TOO_LARGE, f"A request body may have {most} bytes here")


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
