"""The log: JSON lines of requests and events, with closed fields (D48).

Nothing outside `FIELDS` is ever written. Text of a caller is escaped and cut. Of an unforeseen error a line
shows where it arose, not its message, which may hold what a caller sent; developer mode shows all of it.
"""

from __future__ import annotations

import asyncio
import io
import logging
import sys
import threading
import traceback
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from select import PIPE_BUF
from threading import get_ident
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TextIO, TypedDict, cast

import msgspec

from corpid import event_log
from corpid.rules.characters import printable_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping
    from types import TracebackType

    from corpid.event_log import EventLog, Write
    from corpid.rules.oauth.refusals import Reason

    ExceptionTriple = tuple[type[BaseException], BaseException, TracebackType | None]

FIELDS: Final = (
    "time", "level", "event", "request_id", "method", "path", "status", "duration_ms", "address",
    "trace_id", "issuer", "client_id", "claimed_client_id", "error", "reason", "detail", "exception",
)  # fmt: skip
FOREIGN: Final = frozenset({"event", "path", "client_id", "claimed_client_id", "error", "detail"})
"""fields that can contain a caller's text"""
ADDED: Final = frozenset({"issuer", "client_id", "claimed_client_id", "error", "reason", "detail"})
TEXT_CHARACTERS: Final = 200
FRAMES: Final = 12
LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}

_encoder = msgspec.json.Encoder()


class LogFields(TypedDict, total=False):
    """Fields that an endpoint may add to its request's log line (D48).

    Of a refusal: `reason` is its code in the catalogue, `detail` the same in private words, `claimed_client_id` the
    client that the request says it is of, if none has authenticated.
    """

    issuer: str
    """which of several answered (D62)"""
    client_id: str
    claimed_client_id: str
    error: str
    reason: str
    detail: str


def log() -> EventLog:
    """The logger of the program: `log().info("event", address=…)`.

    Fields outside FIELDS are dropped (D48).
    """
    return event_log.log()


def cut(value: object) -> str:
    """A caller's text, fit for a log.

    Printable ASCII, about 200 characters at most. Source: D48
    """
    text = str(value)
    if len(text) > TEXT_CHARACTERS:
        text = f"{text[:TEXT_CHARACTERS]}..."
    if text.isascii() and text.isprintable():
        return text
    return text.encode("unicode_escape").decode("ascii")


def refused(address: str, status: int, request_id: str, reason: Reason, description: str) -> None:
    """Log a request that broke a limit of its connection.

    It never reached the application. Source: D47, D48
    """
    (error,) = reason.value.errors
    log().info(
        "request",
        request_id=request_id,
        status=status,
        address=address,
        error=error,
        reason=reason.code,
        detail=description,
    )


def request(fields: dict[str, Any], added: Mapping[str, object]) -> None:
    """Log a request, with fields that an endpoint added.

    Our own `fields` are named and ordered as in FIELDS. Added fields that are not in ADDED are dropped. Source: D48
    """
    for name in added:
        if name in ADDED:
            fields[name] = cut(added[name])
    _request_lines.write(fields)


def configure(
    *, clock: Callable[[], float], level: str = "info", stream: BinaryIO | None = None, pretty: bool = False
) -> None:
    """Send every line, also those of libraries, to `stream` (default: standard output).

    `clock` gives epoch seconds; `level` is debug, info, warning or error; `pretty` writes for a person at a
    terminal instead of JSON, and shows whole tracebacks. D48.
    """
    minimum = LEVELS[level]
    output = _OneWritePerTurn(stream or sys.stdout.buffer)
    as_json = _JsonLine(clock)
    log().write = _for_people(clock, minimum, output) if pretty else _lines_to(output, as_json, minimum)
    shortcut = not pretty and minimum <= LEVELS["info"]
    _request_lines.write = _straight_to(output, as_json) if shortcut else _as_event
    # The log of libraries goes the same way.
    root = logging.getLogger()
    root.handlers[:] = [_Forward()]
    root.setLevel(max(minimum, logging.WARNING))


class _OneWritePerTurn:
    """One write for all lines of an event loop iteration.

    Never more than a pipe takes whole, so that no line of another process stands inside one of ours. Where no
    loop runs, as in a thread, a line leaves at once.
    """

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._lines = bytearray()
        self._lock = threading.Lock()
        self._turn_of: asyncio.AbstractEventLoop | None = None
        """the loop at whose end of turn the lines leave; one that has ended meanwhile never comes to it"""
        self._turn_in = 0
        """the thread of that loop"""

    def write(self, line: bytes) -> None:
        with self._lock:
            if len(self._lines) + len(line) > PIPE_BUF:
                self._leave()
            self._lines += line
        # Asking for the running loop is a system call.
        if self._turn_of is not None and self._turn_in == get_ident() and self._turn_of.is_running():
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._end_turn()
            return
        self._turn_of, self._turn_in = loop, get_ident()
        loop.call_soon(self._end_turn)

    def flush(self) -> None:
        """Asked for after each line; `_end_turn` does it."""

    def _end_turn(self) -> None:
        self._turn_of = None
        with self._lock:
            self._leave()

    def _leave(self) -> None:
        lines = bytes(self._lines)
        self._lines.clear()
        # If the log cannot be written there is no one to report to; an error here would be logged, and so on for ever.
        with suppress(OSError, ValueError):
            self._output.write(lines)
            self._output.flush()


def _as_event(fields: dict[str, Any]) -> None:
    log().info("request", **fields)


def _lines_to(output: _OneWritePerTurn, as_json: _JsonLine, minimum: int) -> Write:
    """A writer of events as lines of JSON."""

    def write(level: str, event: str, fields: dict[str, Any]) -> None:
        if LEVELS[level] >= minimum:
            output.write(as_json(level, {"event": event, **fields}) + b"\n")

    return write


def _straight_to(output: _OneWritePerTurn, as_json: _JsonLine) -> Callable[[dict[str, Any]], None]:
    """A writer of the lines of requests.

    Choosing and cutting fields costs more than the line itself, and every request writes one.
    """

    def write(fields: dict[str, Any]) -> None:
        output.write(b'{"time":"%b",%b%b\n' % (as_json.time(), _REQUEST, _encoder.encode(fields)[1:]))

    return write


_REQUEST: Final = b'"level":"info","event":"request",'


@dataclass(slots=True)
class _RequestLines:
    write: Callable[[dict[str, Any]], None]


_request_lines: Final = _RequestLines(_as_event)


def exception_place(error: BaseException) -> str:
    """The type and place of an exception, without its message (D48)."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    places = [f"{frame.filename.rpartition('site-packages/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
    return " < ".join([type(error).__name__, *reversed(places)])


class _JsonLine:
    """Renders an event as a line of JSON.

    The date of the running second is kept.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._second = 0
        self._date = b""

    def __call__(self, level: str, event: dict[str, Any]) -> bytes:
        event["time"] = self.time().decode()
        event["level"] = level
        if "exc_info" in event:
            event["exception"] = _place(event["exc_info"])
        line: dict[str, Any] = {name: event[name] for name in FIELDS if name in event}
        for name in FOREIGN & line.keys():
            line[name] = cut(line[name])
        return _encoder.encode(line)

    def time(self) -> bytes:
        """The clock's time, UTC, in milliseconds (RFC 3339)."""
        now = self._clock()
        second = int(now)
        if second != self._second:
            self._date = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S").encode()
            self._second = second
        return self._date + _MILLISECONDS[int((now - second) * 1000)]


_MILLISECONDS: Final = tuple(b".%03dZ" % number for number in range(1000))
"""the end of a time; formatting it costs as much as the line itself"""


def _for_people(clock: Callable[[], float], minimum: int, output: _OneWritePerTurn) -> Write:
    """A writer of events for a person at a terminal."""
    import structlog  # noqa: PLC0415 - brings rich and Pygments, and lines of JSON do without

    def closed(_logger: Any, level: str, event: MutableMapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401
        line = {name: event[name] for name in FIELDS if name in event}
        safe = {name: cut(value) if name in FOREIGN else value for name, value in line.items()}
        when = datetime.fromtimestamp(clock(), UTC).astimezone()
        extra = {"exc_info": event["exc_info"]} if event.get("exc_info") else {}
        return {"timestamp": f"{when:%H:%M:%S}", "level": level, **safe, **extra}

    def as_bytes(_logger: Any, _level: str, text: str) -> bytes:  # noqa: ANN401
        return text.encode(errors="backslashreplace")

    def printable_traceback(stream: TextIO, exc_info: ExceptionTriple) -> None:
        # An exception's text may contain what a caller sent, and this goes to a terminal.
        written = io.StringIO()
        structlog.dev.plain_traceback(written, exc_info)
        stream.write(printable_lines(written.getvalue()))

    rendered = structlog.dev.ConsoleRenderer(pad_event_to=8, exception_formatter=printable_traceback)
    processors: list[Any] = [closed, rendered, as_bytes]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(minimum),
        logger_factory=structlog.BytesLoggerFactory(cast("BinaryIO", output)),
        cache_logger_on_first_use=False,
    )
    return event_log.through_structlog


def _place(exc_info: Any) -> str | None:  # noqa: ANN401
    if exc_info is True:
        exc_info = sys.exc_info()[1]
    if isinstance(exc_info, tuple):
        exc_info = exc_info[1]
    return exception_place(exc_info) if isinstance(exc_info, BaseException) else None


class _Forward(logging.Handler):
    """Lines of libraries that log in the standard way."""

    def emit(self, record: logging.LogRecord) -> None:
        level = "error" if record.levelno >= logging.ERROR else record.levelname.lower()
        fields: dict[str, Any] = {"exc_info": record.exc_info} if record.exc_info else {}
        getattr(log(), level, log().info)(record.getMessage().strip(), **fields)
