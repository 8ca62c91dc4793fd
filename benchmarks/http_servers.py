"""`python -m benchmarks.http_servers`: CorpID's HTTP/1.1 server and uvicorn with httptools and uvloop, in turn.

Each serves the same ASGI applications in a process of its own, to the same callers on loopback: a small application
that reads the body and answers 100 bytes, and a whole provider's discovery document. CPU of the server's process is
what counts, since it hardly depends on what else the machine does. Prints medians, and the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import uvloop

from benchmarks.http_client import encode
from corpid import app, settings
from corpid.web.http import server
from corpid.web.telemetry import access_log

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

SERVERS = ("own", "uvicorn")
DISCOVERY = "/.well-known/openid-configuration"
ANSWER = b'{"answer":"%b"}' % (b"x" * 87)
HEADERS = [
    (b"content-type", b"application/json"),
    (b"content-length", b"%d" % len(ANSWER)),
    (b"cache-control", b"no-store"),
]
FORM = "Content-Type: application/x-www-form-urlencoded\r\nAccept: application/json\r\nUser-Agent: benchmark\r\n"
TICKS = os.sysconf("SC_CLK_TCK")


class Load(NamedTuple):
    name: str
    application: str
    method: str
    path: str
    head: str = ""
    body: bytes | None = None


LOADS = (
    Load("GET, small application", "small", "GET", "/"),
    Load("POST of 1,500 bytes, small application", "small", "POST", "/", FORM, b"x" * 1500),
    Load("GET, discovery of a provider", "provider", "GET", DISCOVERY),
)


async def small(_scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive())["more_body"]:
        pass
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": ANSWER})


async def serve(name: str, application: str, port: int) -> None:
    """Serve in this process until it is terminated."""
    if application == "small":
        await _serve(name, small, port)
        return
    with tempfile.TemporaryDirectory() as folder, Path(os.devnull).open("wb") as log:  # noqa: ASYNC230 - before it serves
        access_log.configure(clock=time.time, stream=log)
        chosen = settings.load(base_url=f"http://localhost:{port}", data_dir=folder, developer_mode=True)
        async with app.create(chosen) as made:
            await _serve(name, made.asgi, port)


async def _serve(name: str, application: ASGIApp, port: int) -> None:
    if name == "own":
        await server.serve(server.Server(application), server.bind("127.0.0.1", port), on_started=lambda: None)
        return
    import uvicorn  # noqa: PLC0415 - what the own server is measured against

    config = uvicorn.Config(
        application, port=port, http="httptools", ws="none", lifespan="off", access_log=False, log_level="error"
    )
    await uvicorn.Server(config).serve()


class _Caller(asyncio.Protocol):
    """Sends the same request again as soon as it is answered, so many times."""

    def __init__(self, request: bytes, answer_bytes: int, times: int) -> None:
        self._request, self._size, self._left = request, answer_bytes, times
        self._read = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        transport.write(self._request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._read += len(data)
        if self._read < self._size:
            return
        self._read, self._left = 0, self._left - 1
        if self._left:
            self._transport.write(self._request)  # type: ignore[attr-defined]
        else:
            self._transport.close()
            self.done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the server closed the connection"))


async def call(load: Load, port: int, connections: int, requests: int) -> None:
    """Send so many requests over so many connections; every answer has as many bytes as the first."""
    loop = asyncio.get_running_loop()
    request = encode(load.method, f"http://localhost:{port}{load.path}", load.head, load.body)
    size = await asyncio.to_thread(_answer_bytes, request, port)
    callers = [_Caller(request, size, requests // connections) for _ in range(connections)]
    await asyncio.gather(*(loop.create_connection(lambda each=each: each, "127.0.0.1", port) for each in callers))  # type: ignore[misc]
    await asyncio.gather(*(each.done for each in callers))


def _answer_bytes(request: bytes, port: int) -> int:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(request)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += connection.recv(1 << 16)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        whole = int(lengths[0].split(b":")[1])
        while len(body) < whole:
            body += connection.recv(1 << 16)
    return len(head) + 4 + whole


def measured(name: str, load: Load, port: int, connections: int, requests: int) -> float:
    """Microseconds of CPU of a server's process for each request."""
    command = [sys.executable, "-m", "benchmarks.http_servers", "--serve", name, load.application, str(port)]
    with subprocess.Popen(command) as process:
        try:
            _until_open(port)
            uvloop.run(call(load, port, connections, requests // 5))
            before = _cpu(process.pid)
            uvloop.run(call(load, port, connections, requests))
            return 1e6 * (_cpu(process.pid) - before) / requests
        finally:
            process.terminate()


def _until_open(port: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError("the server did not start")


def _cpu(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http_servers", description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", nargs=3, metavar=("SERVER", "APPLICATION", "PORT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        name, application, port = options.serve
        server.run(serve(name, application, int(port)))
        return
    port = server.bind("127.0.0.1", 0)[0].getsockname()[1]
    print("| Load | own, µs | uvicorn, µs | own ÷ uvicorn |\n|---|---|---|---|")
    for load in LOADS:
        found = [
            [measured(name, load, port, options.connections, options.requests) for name in SERVERS]
            for _ in range(options.rounds)
        ]
        own, other = (statistics.median(each) for each in zip(*found, strict=True))
        ratio = statistics.median(one / two for one, two in found)
        print(f"| {load.name} | {own:.0f} | {other:.0f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
