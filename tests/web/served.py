"""A server of our own in a thread, and a caller that writes and reads plain bytes."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import uvloop

from corpid.web.http.connections import Limits
from corpid.web.http.server import Server, bind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp, Receive, Scope, Send

PATIENCE = 10.0
"""seconds after which what a server in this process should do does not happen any more"""
PROCESS_SECONDS = 90.0
"""the same for a process of its own, which on a busy machine takes long to start, to answer and to stop"""
SHORT = Limits(head_seconds=0.3, body_seconds=0.6, idle_seconds=0.5, unread_seconds=0.5, linger_seconds=0.5)


class Asked(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Recorder:
    """An application that answers with what it was asked; `/wait` answers when `gate` opens."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.waiting = threading.Event()
        self.gate = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise NotImplementedError
        message = await receive()
        assert not message["more_body"]
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        asked = Asked(scope["method"], scope["path"], headers, message["body"])
        self.asked.append(asked)
        if asked.path == "/wait":
            self.waiting.set()
            while not self.gate.is_set():  # noqa: ASYNC110 - set by another thread
                await asyncio.sleep(0.01)
        answer = b"x" * int(asked.headers.get("x-answer-bytes", "0")) or f"{asked.path} {len(asked.body)}".encode()
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(answer))]}
        )
        await send({"type": "http.response.body", "body": answer})


class Served:
    """A running server: where it listens, and how to stop it."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop, port: int) -> None:
        self.server = server
        self.loop = loop
        self.port = port

    def call(self, *, tls: ssl.SSLContext | None = None) -> Caller:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        return Caller(tls.wrap_socket(connection, server_hostname="localhost") if tls else connection)

    def begin_stop(self) -> Any:
        return asyncio.run_coroutine_threadsafe(self.server.stop(), self.loop)


@contextmanager
def served(app: ASGIApp, **options: Any) -> Iterator[Served]:
    """Serve an application on a free port of 127.0.0.1, in a thread and a loop of its own."""
    started: list[Served] = []
    ready, done = threading.Event(), threading.Event()

    async def main() -> None:
        server = Server(app, **options)
        (listening,) = bind("127.0.0.1", 0)
        port = listening.getsockname()[1]
        await server.start([listening])
        started.append(Served(server, asyncio.get_running_loop(), port))
        ready.set()
        while not done.is_set():  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.01)
        server.force()
        await server.stop()

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(PATIENCE)
    try:
        yield started[0]
    finally:
        done.set()
        thread.join(PATIENCE)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Caller:
    """The other end of one connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._file = connection.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._file.close()
        self.socket.close()

    def say(self, text: bytes) -> Caller:
        self.socket.sendall(text)
        return self

    def say_while_heard(self, piece: bytes, total: int) -> int:
        """Send a piece again and again until all was sent or the other end no longer reads; how much was sent."""
        sent = 0
        try:
            while sent < total:
                self.socket.sendall(piece)
                sent += len(piece)
        except (BrokenPipeError, ConnectionResetError, TimeoutError, ssl.SSLEOFError):
            return sent
        return sent

    def answer(self) -> Answer:
        """The next answer; answers with code 1xx are answers too."""
        status = int(self._file.readline().split(b" ")[1])
        headers: dict[str, str] = {}
        while (line := self._file.readline().strip()) and b":" in line:
            name, _, value = line.decode().partition(":")
            headers[name] = value.strip()
        return Answer(status, headers, self._file.read(int(headers.get("content-length", "0"))))

    def hung_up(self) -> bool:
        """Waits for the other end to hang up; nothing more may come before it does."""
        try:
            return self._file.read(1) == b""
        except ConnectionResetError:
            return True

    def rest(self) -> bytes:
        """Everything up to the end of the connection, however it ends."""
        pieces = []
        try:
            while piece := self.socket.recv(1 << 16):
                pieces.append(piece)
        except ConnectionResetError:
            pass
        return b"".join(pieces)
