"""A large body is read by the application, and of callers that it knows, over real sockets (D47, D59)."""

from __future__ import annotations

import asyncio
import threading
import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from corpid.web.http.connections import Limits
from corpid.web.http.server import server_context
from tests.web.served import PATIENCE, SHORT, Caller, served
from tests.web.test_tls import trusting, write_pair
from tests.web.test_workers import until

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from starlette.types import Receive, Scope, Send

MEBIBYTE = 1 << 20
GET = b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n"
LIMITS = replace(SHORT, body_bytes=1000, bulk_body_bytes=4 * MEBIBYTE, bulk_body_seconds=1.5, linger_seconds=0.1)


def head(length: int | None = None, *, path: str = "/bulk", known: bool = True, expects: bool = False) -> bytes:
    framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    more = "Known: yes\r\n" * known + "Expect: 100-continue\r\n" * expects
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{more}{framing}\r\n\r\n".encode()


class Application:
    """Reads the body of those it knows; answers with its size, or 401 without having read."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.read = 0
        self.ended: list[str] = []

    def hears(self) -> list[str]:
        """What ended calls that waited for a body; the first of them is waited for."""
        for _ in range(int(PATIENCE / 0.02)):
            if self.ended:
                break
            threading.Event().wait(0.02)
        return self.ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise NotImplementedError
        self.begun.set()
        while not self.gate.is_set():  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.01)
        status, answer = 401, b"unknown"
        if (b"known", b"yes") in scope["headers"] or scope["method"] == "GET":
            size, more = 0, True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    self.ended.append("disconnect")
                    return
                size += len(message["body"])
                self.read = size
                more = message["more_body"]
            status, answer = 200, b"%d" % size
        await send(
            {"type": "http.response.start", "status": status, "headers": [(b"content-length", b"%d" % len(answer))]}
        )
        await send({"type": "http.response.body", "body": answer})


@pytest.fixture
def app() -> Application:
    return Application()


@pytest.fixture(params=["http", "https"])
def call(request: pytest.FixtureRequest, app: Application, tmp_path: Path) -> Iterator[Callable[[], Caller]]:
    own_tls: ssl.SSLContext | None = None
    caller_tls: ssl.SSLContext | None = None
    if request.param == "https":
        pair = write_pair(tmp_path)
        own_tls, caller_tls = server_context(*pair), trusting(pair[0])
    with served(app, limits=LIMITS, tls=own_tls, streamed={"/bulk"}) as running:
        yield lambda: running.call(tls=caller_tls)


def chunked(size: int, piece: int = 65536) -> bytes:
    whole, rest = divmod(size, piece)
    sizes = [piece] * whole + [rest] * bool(rest)
    return b"".join(b"%x\r\n%b\r\n" % (each, b"x" * each) for each in sizes) + b"0\r\n\r\n"


@pytest.mark.parametrize("in_chunks", [False, True])
def test_a_large_body_is_read_and_the_connection_kept(call: Callable[[], Caller], *, in_chunks: bool) -> None:
    """D59: 16 MiB there, 64 KiB elsewhere."""
    size = 4 * MEBIBYTE
    with call() as caller:
        for _ in range(2):
            caller.say(head(None) + chunked(size) if in_chunks else head(size) + b"x" * size)
            answer = caller.answer()
            assert (answer.status, answer.body) == (200, b"%d" % size)
        assert caller.say(GET).answer().body == b"0"


def test_nothing_is_read_of_an_unknown_caller(call: Callable[[], Caller], app: Application) -> None:
    """D59: read only after authentication. The answer ends the connection, and what follows is no request."""
    with call() as caller:
        answer = caller.say(head(MEBIBYTE, known=False) + GET).answer()
        assert (answer.status, answer.headers["connection"], answer.body) == (401, "close", b"unknown")
        assert caller.hung_up()
    assert app.read == 0


def test_no_more_waits_for_the_application_than_a_connection_holds(app: Application) -> None:
    """D47, D59: what a caller sends before it is known costs one small buffer."""
    app.gate.clear()
    with served(app, limits=replace(LIMITS, bulk_body_bytes=64 * MEBIBYTE), streamed={"/bulk"}) as running:
        with running.call() as caller:
            caller.socket.settimeout(0.5)
            tracemalloc.start()
            caller.say(head(64 * MEBIBYTE))
            sent = caller.say_while_heard(b"x" * 65536, 64 * MEBIBYTE)
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert app.begun.is_set()
            assert (app.read, sent < 32 * MEBIBYTE, most < 2 * MEBIBYTE) == (0, True, True)
        app.gate.set()


def test_a_caller_that_waits_is_told_to_go_on_when_it_is_known(call: Callable[[], Caller], app: Application) -> None:
    """RFC 9110 §10.1.1."""
    app.gate.clear()
    with call() as caller:
        caller.say(head(9, expects=True))
        assert app.begun.wait(PATIENCE)
        app.gate.set()
        assert caller.answer().status == 100
        assert caller.say(b"x" * 9).answer().body == b"9"
        refused = caller.say(head(9, known=False, expects=True)).answer()
        assert (refused.status, refused.headers["connection"]) == (401, "close")


@pytest.mark.parametrize("length", [4 * MEBIBYTE + 1, None])
def test_a_body_above_the_limit_is_refused(call: Callable[[], Caller], app: Application, length: int | None) -> None:
    """D59: 413, declared or not."""
    with call() as caller:
        caller.say(head(length))
        if length is None:
            caller.say_while_heard(b"10000\r\n" + b"x" * 65536 + b"\r\n", 5 * MEBIBYTE)
        answer = caller.answer()
        assert (answer.status, answer.json["error"]) == (413, "invalid_request")
        assert caller.hung_up()
    assert app.read <= 4 * MEBIBYTE


def test_elsewhere_and_with_another_method_the_usual_limit_holds(call: Callable[[], Caller]) -> None:
    """D47."""
    for start in (head(1001, path="/bulk/x"), head(1001).replace(b"POST", b"PUT"), head(1001, path="/a")):
        with call() as caller:
            assert caller.say(start).answer().status == 413


@pytest.mark.full
@pytest.mark.parametrize(
    ("body", "status"),
    [(b"5\r\nxxxxx\r\nzz\r\n", 400), (b"1\r\nx\r\n", 408), (b"1;" + b"e" * 70000 + b"\r\nx\r\n", 408)],
    ids=["broken chunks", "no end", "extensions"],
)
def test_the_application_hears_that_a_body_does_not_end(
    call: Callable[[], Caller], app: Application, body: bytes, status: int
) -> None:
    """D47: 400 and 408 are the connection's own; the call that waits for the body ends."""
    with call() as caller:
        assert caller.say(head(None) + body).answer().status == status
        assert caller.hung_up()
    assert app.hears() == ["disconnect"]


def test_a_body_that_is_refused_behind_another_request_ends_the_connection(app: Application) -> None:
    """D47: the answer to the first comes, then the refusal, then the end; nothing is kept of a caller that left."""
    with served(app, limits=LIMITS, streamed={"/bulk"}) as running:
        with running.call() as caller:
            caller.say(GET + head() + b"ZZ\r\n")
            assert [caller.answer().status for _ in range(2)] == [200, 400]
            assert caller.hung_up()
        with running.call() as caller:
            caller.say(GET + head() + b"ZZ\r\n")
        until(lambda: len(running.server.open_connections) == 0)


def test_a_caller_that_leaves_ends_the_call(call: Callable[[], Caller], app: Application) -> None:
    with call() as caller:
        caller.say(head(MEBIBYTE) + b"x" * 1000)
        assert app.begun.wait(PATIENCE)
    with call() as other:
        assert other.say(GET).answer().status == 200
    assert app.hears() == ["disconnect"]


@pytest.mark.full
def test_the_time_of_a_body_runs_from_when_it_is_wanted(call: Callable[[], Caller], app: Application) -> None:
    """D59: while the caller is looked up no time of its own passes."""
    app.gate.clear()
    with call() as caller:
        caller.say(head(9) + b"x")
        assert not app.gate.wait(LIMITS.bulk_body_seconds + 1)
        app.gate.set()
        assert caller.say(b"x" * 8).answer().body == b"9"


def test_a_slow_body_holds_nobody_else(call: Callable[[], Caller]) -> None:
    """D59."""
    with call() as slow, call() as other:
        slow.say(head(9) + b"x")
        assert other.say(head(5) + b"x" * 5).answer().body == b"5"
        assert slow.say(b"x" * 8).answer().body == b"9"


def test_a_large_body_waits_for_its_turn_behind_an_earlier_request(call: Callable[[], Caller]) -> None:
    """RFC 9112 §9.3.2."""
    with call() as caller:
        caller.say(GET + head(MEBIBYTE) + b"x" * MEBIBYTE + GET)
        assert [caller.answer().body for _ in range(3)] == [b"0", b"%d" % MEBIBYTE, b"0"]


def test_a_server_that_stops_still_reads_the_body_that_has_begun(app: Application) -> None:
    """D52."""
    with served(app, limits=LIMITS, streamed={"/bulk"}, drain_seconds=10) as running, running.call() as caller:
        caller.say(head(9) + b"x")
        assert app.begun.wait(PATIENCE)
        running.begin_stop()
        threading.Event().wait(0.2)
        answer = caller.say(b"x" * 8).answer()
        assert (answer.body, answer.headers["connection"]) == (b"9", "close")


def test_the_limits_are_those_of_the_interface() -> None:
    """D59."""
    assert (Limits().bulk_body_bytes, Limits().bulk_body_seconds) == (16 * MEBIBYTE, 120)
