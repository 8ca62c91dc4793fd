"""An upgrade that is not followed is as if absent, on every request, over real sockets (RFC 9110 §7.8)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.web.served import SHORT, Caller, Recorder, Served, served
from tests.web.test_streamed_bodies import Application

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


GET = b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
OFFERS = {
    "none": b"",
    "h2c, as Java's HttpClient": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n",
    "websocket": b"Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
    "TLS": b"Upgrade: TLS/1.0, HTTP/2.0\r\nConnection: upgrade\r\n",
}
BODIES = {
    "none": (b"\r\n", b"", b""),
    "empty": (b"Content-Length: 0\r\n\r\n", b"", b""),
    "length": (b"Content-Length: 35\r\n\r\n", SMUGGLED, SMUGGLED),
    "chunks": (
        b"Transfer-Encoding: chunked\r\n\r\n",
        b"23\r\n%b\r\n1;x=y\r\n!\r\n0\r\n\r\n" % SMUGGLED,
        SMUGGLED + b"!",
    ),
    "trailers": (b"Transfer-Encoding: chunked\r\nTrailer: A\r\n\r\n", b"1\r\n!\r\n0\r\nHost: x\r\n\r\n", b"!"),
    "no chunk": (b"Transfer-Encoding: chunked\r\n\r\n", b"0\r\n\r\n", b""),
}


@pytest.fixture
def app() -> Recorder:
    return Recorder()


@pytest.fixture
def usual(app: Recorder) -> Iterator[Served]:
    """With a path whose body the application reads, and one whose body nobody reads."""
    with served(app, limits=replace(SHORT, idle_seconds=5.0), bodiless={"/info"}) as running:
        yield running


def whole(caller: Caller, request: bytes) -> None:
    caller.say(request)


def bytewise(caller: Caller, request: bytes) -> None:
    for at in range(len(request)):
        caller.say(request[at : at + 1])


@pytest.mark.full
@pytest.mark.parametrize("method", [b"POST", b"GET", b"PUT"])
@pytest.mark.parametrize("says", [whole, bytewise])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("offer", OFFERS)
def test_the_request_is_read_as_without_it_and_the_connection_goes_on(
    usual: Served, app: Recorder, offer: str, body: str, says: Callable[[Caller, bytes], None], method: bytes
) -> None:
    """RFC 9112 §6, §11.2: and nothing in the body is taken for a request; three times, then one in a pipeline."""
    announced, sent, read = BODIES[body]
    head = b"%b /a HTTP/1.1\r\nHost: h\r\n%b%b" % (method, OFFERS[offer], announced)
    with usual.call() as caller:
        for _ in range(2):
            says(caller, head + sent)
            answer = caller.answer()
            assert (answer.status, answer.body, "connection" in answer.headers) == (200, b"/a %d" % len(read), False)
        says(caller, (head + sent) * 2 + GET)
        assert [caller.answer().body for _ in range(3)] == [b"/a %d" % len(read)] * 2 + [b"/next 0"]
    assert [asked.path for asked in app.asked] == ["/a"] * 4 + ["/next"]
    assert {asked.body for asked in app.asked[:4]} == {read}
    assert {asked.headers["host"] for asked in app.asked} == {"h"}


@pytest.mark.parametrize("offer", OFFERS)
@pytest.mark.parametrize("body", ["length", "chunks"])
def test_a_body_on_condition_is_asked_for(usual: Served, app: Recorder, offer: str, body: str) -> None:
    """RFC 9110 §7.8: 100 Continue comes before everything else; §10.1.1."""
    announced, sent, read = BODIES[body]
    with usual.call() as caller:
        caller.say(b"POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n" + OFFERS[offer] + announced)
        assert caller.answer().status == 100
        assert caller.say(sent + GET).answer().body == b"/a %d" % len(read)
        assert caller.answer().body == b"/next 0"
    assert app.asked[0].body == read


@pytest.mark.parametrize("offer", [b"Connection: close, Upgrade\r\nUpgrade: h2c\r\n", b"Connection: close\r\n"])
@pytest.mark.parametrize("body", BODIES)
def test_a_connection_that_its_caller_ends_is_ended(usual: Served, app: Recorder, offer: bytes, body: str) -> None:
    """RFC 9112 §9.6: nothing behind that request is one."""
    announced, sent, _ = BODIES[body]
    with usual.call() as caller:
        answer = caller.say(b"POST /a HTTP/1.1\r\nHost: h\r\n" + offer + announced + sent + SMUGGLED).answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert caller.hung_up()
    assert len(app.asked) == 1


@pytest.mark.parametrize("offer", OFFERS)
@pytest.mark.parametrize(
    ("framing", "status"),
    [
        (b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400),
        (b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
        (b"Transfer-Encoding: gzip\r\n\r\n", 400),
        (b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 400),
        (b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        (b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"Transfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n0\r\n\r\n", 400),
        (b"Transfer-Encoding: chunked\r\n\r\n-1\r\n", 400),
        (b"Content-Length: -1\r\n\r\n", 400),
        (b"Content-Length: 99999999\r\n\r\n", 413),
        (b"Transfer-Encoding: chunked\r\n\r\nfffffff\r\n" + b"x" * 200_000, 413),
        (b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 100_000, 413),
    ],
)
def test_framing_that_is_refused_is_refused_with_it(
    usual: Served, app: Recorder, offer: str, framing: bytes, status: int
) -> None:
    """RFC 9112 §6.1, §6.3, §11.2; D47: the connection ends, and what follows is no request."""
    with usual.call() as caller:
        head = b"POST /a HTTP/1.1\r\nHost: h\r\n" + OFFERS[offer] + framing
        caller.say_while_heard(head + SMUGGLED, len(head) + len(SMUGGLED))
        answer = caller.answer()
        assert (answer.status, answer.headers["connection"]) == (status, "close")
        assert b"HTTP/1.1" not in caller.rest()
    assert app.asked == []


@pytest.mark.parametrize("offer", OFFERS)
def test_a_protocol_that_begins_unasked_is_refused(usual: Served, app: Recorder, offer: str) -> None:
    """RFC 9110 §7.8: it may begin only after 101, which never comes; here HTTP/2 (RFC 9113 §3.4)."""
    with usual.call() as caller:
        caller.say(b"GET /a HTTP/1.1\r\nHost: h\r\n" + OFFERS[offer] + b"\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert caller.answer().status == 200
        assert caller.answer().status in {400, 505}
        assert caller.hung_up()
    assert [asked.path for asked in app.asked] == ["/a"]


@pytest.mark.parametrize("offer", OFFERS)
def test_a_caller_of_http_1_0_is_answered_and_its_connection_ended(usual: Served, app: Recorder, offer: str) -> None:
    """RFC 9110 §7.8: an Upgrade in HTTP/1.0 is ignored; RFC 9112 §9.3."""
    with usual.call() as caller:
        caller.say(b"POST /a HTTP/1.0\r\nHost: h\r\n" + OFFERS[offer] + b"Content-Length: 3\r\n\r\nabc" + SMUGGLED)
        answer = caller.answer()
        assert (answer.body, answer.headers["connection"]) == (b"/a 3", "close")
        assert caller.hung_up()
    assert len(app.asked) == 1


@pytest.mark.parametrize("offer", OFFERS)
@pytest.mark.parametrize("body", ["length", "chunks"])
def test_a_body_that_is_not_read_ends_the_connection(usual: Served, app: Recorder, offer: str, body: str) -> None:
    """Spec 4.4: userinfo reads none."""
    announced, sent, _ = BODIES[body]
    with usual.call() as caller:
        answer = caller.say(b"POST /info HTTP/1.1\r\nHost: h\r\n" + OFFERS[offer] + announced + sent).answer()
        assert (answer.body, answer.headers["connection"]) == (b"/info 0", "close")
        assert caller.hung_up()
    assert len(app.asked) == 1


def test_the_whole_server_may_be_asked_for_its_options(usual: Served, app: Recorder) -> None:
    """RFC 9110 §9.3.7, RFC 9112 §3.2.4: the application gets the target as it came; the connection goes on."""
    with usual.call() as caller:
        assert caller.say(b"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n" + GET).answer().body == b"* 0"
        assert caller.answer().body == b"/next 0"


@pytest.mark.parametrize("offer", OFFERS)
@pytest.mark.parametrize("body", ["length", "chunks"])
def test_the_application_reads_a_large_body_itself(offer: str, body: str) -> None:
    """D59: and the connection goes on behind it."""
    announced, sent, read = BODIES[body]
    with served(Application(), limits=SHORT, streamed={"/bulk"}) as running, running.call() as caller:
        head = b"POST /bulk HTTP/1.1\r\nHost: h\r\nKnown: yes\r\n" + OFFERS[offer] + announced
        assert caller.say(head + sent + GET).answer().body == b"%d" % len(read)
        assert caller.answer().body == b"0"
