"""A small HTTP/1.1 client for load: one request at a time on a kept connection, and a browser's cookies."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httptools

SECONDS = 15.0
"""for one answer; longer counts as wrong"""


@dataclass(slots=True, kw_only=True)
class Answer:
    """What came back."""

    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""

    def get(self, name: bytes) -> str:
        """The first header of this name (lower case), or nothing."""
        return next((value.decode("latin-1") for header, value in self.headers if header == name), "")


def encode(method: str, url: str, head: str = "", body: bytes | None = None) -> bytes:
    """A request as it goes out; `head` is whole header lines."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    length = "" if body is None else f"Content-Length: {len(body)}\r\n"
    return f"{method} {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n{head}{length}\r\n".encode("latin-1") + (body or b"")


class _Exchange(asyncio.Protocol):
    """The parser's side of a connection; `waiting` is who waits for the answer that comes next."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._answer = Answer()
        self.waiting: asyncio.Future[Answer] | None = None

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(exc or ConnectionError("the server closed the connection"))

    def on_message_begin(self) -> None:
        self._answer = Answer()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._answer.headers.append((name.lower(), value))

    def on_body(self, body: bytes) -> None:
        self._answer.body += body

    def on_message_complete(self) -> None:
        self._answer.status = self._parser.get_status_code()
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_result(self._answer)

    def _fail(self, error: Exception) -> None:
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_exception(error)


class Client:
    """One connection, opened when it is first needed and again after the server closed it."""

    def __init__(self, issuer: str) -> None:
        parts = urlsplit(issuer)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._transport: asyncio.Transport | None = None
        self._exchange = _Exchange()

    async def send(self, request: bytes) -> Answer:
        """Send an encoded request. Raises OSError, TimeoutError or httptools.HttpParserError."""
        loop = asyncio.get_running_loop()
        if self._transport is None or self._transport.is_closing():
            self._transport, self._exchange = await loop.create_connection(_Exchange, self._host, self._port)
        self._exchange.waiting = loop.create_future()
        self._transport.write(request)
        async with asyncio.timeout(SECONDS):
            return await self._exchange.waiting

    async def fetch(self, url: str, method: str = "GET", head: str = "", body: bytes | None = None) -> Answer:
        """As `send`, from its parts."""
        return await self.send(encode(method, url, head, body))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class Jar:
    """A browser's cookies; all are for one host and every path."""

    def __init__(self) -> None:
        self._cookies: dict[str, str] = {}

    def header(self, _path: str) -> str:
        """The value of the Cookie header."""
        return "; ".join(f"{name}={value}" for name, value in self._cookies.items())

    def store(self, answer: Answer, _path: str) -> None:
        """Keep what an answer sets, drop what it takes away."""
        for text in (value.decode("latin-1") for name, value in answer.headers if name == b"set-cookie"):
            pair, *attributes = text.split(";")
            name, _, value = pair.partition("=")
            if "max-age=0" in {attribute.strip().lower() for attribute in attributes}:
                self._cookies.pop(name, None)
            else:
                self._cookies[name] = value
