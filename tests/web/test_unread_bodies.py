"""The body of a request at a resource is not read, over real sockets (Spec 4.4: any body sent is ignored)."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx
import pytest

from corpid.web.http.connections import Limits
from corpid.web.http.server import server_context
from tests.web.processes import serving
from tests.web.served import PATIENCE, SHORT, Caller, Recorder, served
from tests.web.test_tls import trusting, write_pair

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from starlette.types import Receive, Scope, Send

HEAD = b"POST /info HTTP/1.1\r\nHost: localhost\r\n"
GET = b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
ANNOUNCED = {
    "a length": b"Content-Length: 9\r\n\r\n",
    "a length above the limit": b"Content-Length: 65537\r\n\r\n",
    "the greatest length": b"Content-Length: 18446744073709551615\r\n\r\n",
    "chunks": b"Transfer-Encoding: chunked\r\n\r\n",
    "a length on condition": b"Expect: 100-continue\r\nContent-Length: 100000\r\n\r\n",
    "chunks on condition": b"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n",
    "another type": b"Content-Type: multipart/form-data\r\nContent-Length: 70000\r\n\r\n",
    "no type": b"Content-Type:\r\nContent-Length: 70000\r\n\r\n",
    "an upgrade": b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 70000\r\n\r\n",
    "chunks and an upgrade": b"Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n",
}


class Waiting:
    """An application that answers when `gate` opens, and reads nothing."""

    def __init__(self) -> None:
        self.recorder = Recorder()
        self.asked = self.recorder.asked
        self.begun = threading.Event()
        self.gate = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def nothing_read() -> dict[str, object]:
            return {"body": b"", "more_body": False}

        if scope["type"] == "http":
            self.begun.set()
        await self.recorder(scope, nothing_read if scope["path"] == "/wait" else receive, send)


@pytest.fixture
def app() -> Recorder:
    return Recorder()


@pytest.fixture(params=["http", "https"])
def call(request: pytest.FixtureRequest, app: Recorder, tmp_path: Path) -> Iterator[Callable[[], Caller]]:
    """Calls a server that reads no body at /info and /wait, over TLS or without."""
    own_tls: ssl.SSLContext | None = None
    caller_tls: ssl.SSLContext | None = None
    if request.param == "https":
        pair = write_pair(tmp_path)
        own_tls, caller_tls = server_context(*pair), trusting(pair[0])
    with served(app, limits=replace(SHORT, linger_seconds=0.1), tls=own_tls, bodiless={"/info", "/wait"}) as running:
        yield lambda: running.call(tls=caller_tls)


@pytest.mark.parametrize("announced", ANNOUNCED.values(), ids=ANNOUNCED)
def test_a_body_that_never_comes_is_not_waited_for(call: Callable[[], Caller], app: Recorder, announced: bytes) -> None:
    """Spec 4.4; RFC 9110 §10.1.1: the answer comes instead of 100 Continue, and the connection ends with it."""
    with call() as caller:
        answer = caller.say(HEAD + announced).answer()
        assert (answer.status, answer.headers["connection"], answer.body) == (200, "close", b"/info 0")
        assert caller.hung_up()
    assert len(app.asked) == 1


BODIES = {
    "a small one": b"Content-Length: 9\r\n\r\n" + b"x" * 9,
    "a large one": b"Content-Length: 500000\r\n\r\n" + b"x" * 500_000,
    "one in chunks": b"Transfer-Encoding: chunked\r\n\r\n" + (b"1000\r\n" + b"x" * 4096 + b"\r\n") * 100 + b"0\r\n\r\n",
    "broken chunks": b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a request": b"Content-Length: %d\r\n\r\n" % len(SMUGGLED) + SMUGGLED,
    "a request behind a shorter body": b"Content-Length: 1\r\n\r\nx" + SMUGGLED,
    "a request instead of chunks": b"Transfer-Encoding: chunked\r\n\r\n" + SMUGGLED,
    "a request behind the last chunk": b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
}


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_body_is_thrown_away_and_nothing_in_or_behind_it_is_a_request(
    call: Callable[[], Caller], app: Recorder, body: bytes, *, split: bool
) -> None:
    """Spec 4.4; RFC 9112 §9.6, §11.2: what follows an unread body must not be taken for a request."""
    with call() as caller:
        if split:
            announced, rest = body[: body.index(b"\r\n\r\n") + 4], body[body.index(b"\r\n\r\n") + 4 :]
            answer = caller.say(HEAD + announced).answer()
            caller.say_while_heard(rest, len(rest))
        else:
            answer = caller.say(HEAD + body).answer()
        assert (answer.status, answer.headers["connection"], answer.body) == (200, "close", b"/info 0")
        assert caller.hung_up()
    assert [asked.path for asked in app.asked] == ["/info"]


def test_a_request_without_a_body_keeps_the_connection(call: Callable[[], Caller]) -> None:
    """Spec 4.4: POST needs no body."""
    with call() as caller:
        for announced in (b"\r\n", b"Content-Length: 0\r\n\r\n", b"Content-Length: 0\r\nExpect: 100-continue\r\n\r\n"):
            answer = caller.say(HEAD + announced).answer()
            assert (answer.status, "connection" in answer.headers) == (200, False)


@pytest.mark.parametrize("target", [b"/info?x=/a", b"/inf%6f", b"http://localhost/info", b"http://localhost/info?x"])
def test_the_path_counts_however_it_is_written(call: Callable[[], Caller], target: bytes) -> None:
    """RFC 9112 §3.2, RFC 3986 §6.2.2.2"""
    with call() as caller:
        answer = caller.say(b"POST %b HTTP/1.1\r\nHost: h\r\nContent-Length: 70000\r\n\r\n" % target).answer()
        assert (answer.status, answer.body) == (200, b"/info 0")


@pytest.mark.parametrize("target", [b"/infos", b"/info/", b"/a?/info", b"http://info/a"])
def test_at_another_path_a_body_is_read_and_bounded(call: Callable[[], Caller], target: bytes) -> None:
    """D47: 413 above 64 KiB."""
    with call() as caller:
        caller.say(b"POST %b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc" % target)
        assert caller.answer().body.endswith(b" 3")
        caller.say(b"POST %b HTTP/1.1\r\nHost: h\r\nContent-Length: 70000\r\n\r\n" % target)
        assert caller.answer().status == 413


def test_behind_other_requests_it_is_answered_in_its_turn(call: Callable[[], Caller], app: Recorder) -> None:
    """RFC 9112 §9.3.2"""
    with call() as caller:
        caller.say(GET + GET + HEAD + b"Content-Length: 70000\r\n\r\n" + GET)
        assert [caller.answer().body for _ in range(3)] == [b"/a 0", b"/a 0", b"/info 0"]
        assert caller.hung_up()
    assert [asked.path for asked in app.asked] == ["/a", "/a", "/info"]


def test_a_huge_body_is_held_back_while_the_answer_is_made() -> None:
    """D47: a caller that sends without end costs no memory, and finds its answer when it looks."""
    app = Waiting()
    with served(app, bodiless={"/wait"}) as running, running.call() as caller:
        caller.socket.settimeout(0.5)
        caller.say(HEAD.replace(b"/info", b"/wait") + b"Content-Length: 1000000000\r\n\r\n")
        assert app.begun.wait(PATIENCE)
        assert caller.say_while_heard(b"x" * 65536, 100_000_000) < 50_000_000
        app.recorder.gate.set()
        caller.socket.settimeout(PATIENCE)
        answer = caller.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert caller.hung_up()


def test_a_long_answer_arrives_whole_though_a_body_was_left_unread(call: Callable[[], Caller]) -> None:
    """RFC 9112 §9.6: closing at once would reset what the caller has not read yet."""
    with call() as caller:
        caller.say(HEAD + b"X-Answer-Bytes: 2000000\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200_000)
        assert len(caller.answer().body) == 2_000_000
        assert caller.hung_up()


def test_a_caller_that_stays_on_is_sent_away(call: Callable[[], Caller]) -> None:
    """D47: what comes after the answer is thrown away, up to a bound."""
    with call() as caller:
        assert caller.say(HEAD + b"Content-Length: 1000000000\r\n\r\n").answer().status == 200
        assert caller.say_while_heard(b"x" * 65536, 1_000_000_000) < 100_000_000


def test_a_stopping_server_waits_for_no_body() -> None:
    """D47"""
    app = Recorder()
    with served(app, bodiless={"/wait"}, drain_seconds=10) as running, running.call() as caller:
        caller.say(HEAD.replace(b"/info", b"/wait") + b"Content-Length: 70000\r\n\r\n")
        assert app.waiting.wait(PATIENCE)
        stopping = running.begin_stop()
        app.gate.set()
        assert caller.answer().status == 200
        caller.socket.shutdown(socket.SHUT_RDWR)
        stopping.result(PATIENCE)


def test_a_resource_of_the_served_provider_reads_no_body(tmp_path: Path) -> None:
    """Spec 4.4, 7.4: the bare 401, whatever was announced; elsewhere 413 above 64 KiB (D47)."""
    with serving(tmp_path) as running:
        url = httpx.URL(running.base_url)
        for path, expected in (("/userinfo", 401), ("/request", 413)):
            with Caller(socket.create_connection((url.host, url.port), timeout=PATIENCE)) as caller:
                target = f"{url.path.rstrip('/')}{path}".encode()
                head = b"POST %b HTTP/1.1\r\nHost: %b\r\nContent-Length: %d\r\n\r\n"
                answer = caller.say(head % (target, url.netloc, Limits().body_bytes + 1)).answer()
                assert (answer.status, answer.headers["connection"]) == (expected, "close")
                assert (answer.body == b"") == (expected == 401)


@pytest.mark.full
@pytest.mark.parametrize("path", ["/account/language", "/manage/invite", "/console/new-client", "/sign-in/x/password"])
def test_a_form_that_is_too_large_is_refused_on_a_page(tmp_path: Path, path: str) -> None:
    """D47, D32: 413 for a person, who reads no JSON; the browser may send the whole body all the same."""
    with serving(tmp_path) as running:
        url = httpx.URL(running.base_url)
        with Caller(socket.create_connection((url.host, url.port), timeout=PATIENCE)) as caller:
            head = (
                b"POST %b HTTP/1.1\r\nHost: %b\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                b"Sec-Fetch-Site: same-origin\r\nContent-Length: %d\r\n\r\n"
            )
            size = Limits().body_bytes + 1
            target = f"{url.path.rstrip('/')}{path}".encode()
            answer = caller.say(head % (target, url.netloc, size) + b"a" * size).answer()
            assert (answer.status, answer.headers["connection"]) == (413, "close")
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert b"<h1>This form is too long</h1>" in answer.body
