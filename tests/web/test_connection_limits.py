"""Every limit of a connection, over real sockets (D47)."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING

import pytest

from corpid.web.http.connections import Limits
from tests.logs import capture_logs
from tests.web.served import SHORT, Recorder, Served, served
from tests.web.test_workers import until

if TYPE_CHECKING:
    from collections.abc import Iterator

GET = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n"


@pytest.fixture
def app() -> Recorder:
    return Recorder()


@pytest.fixture
def usual(app: Recorder) -> Iterator[Served]:
    """With the limits of D47."""
    with served(app) as running:
        yield running


@pytest.fixture
def impatient(app: Recorder) -> Iterator[Served]:
    """With times short enough for a test."""
    with served(app, limits=SHORT) as running:
        yield running


def test_a_request_is_answered_and_the_connection_kept(usual: Served) -> None:
    with usual.call() as caller:
        for _ in range(3):
            answer = caller.say(GET).answer()
            assert (answer.status, answer.body) == (200, b"/a 0")
        assert "date" in answer.headers
        assert "server" not in answer.headers


def test_pipelined_requests_are_answered_in_their_order(usual: Served) -> None:
    with usual.call() as caller:
        caller.say(
            b"".join(
                b"POST /%d HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % (n, n) + b"x" * n for n in range(9)
            )
        )
        assert [caller.answer().body for _ in range(9)] == [b"/%d %d" % (n, n) for n in range(9)]


def test_a_caller_that_leaves_with_requests_in_the_pipeline_leaves_no_error(usual: Served, app: Recorder) -> None:
    """D48: an error in the log is one of ours."""
    with capture_logs() as lines:
        with usual.call() as caller:
            caller.say(GET.replace(b"/a", b"/wait") + GET)
            assert app.waiting.wait(5)
            caller.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        until(lambda: not usual.server.open_connections)
        app.gate.set()
        until(lambda: not usual.server.in_progress)
    assert lines == []
    assert len(app.asked) == 1, "nobody waits for the second"


def test_more_pipelined_requests_than_may_wait_end_the_connection(usual: Served, app: Recorder) -> None:
    app.gate.set()
    with usual.call() as caller:
        caller.say(GET * 1000)
        heard = [caller.answer() for _ in range(Limits().pipelined + 1)]
        assert heard[-1].headers["connection"] == "close"
        assert caller.hung_up()
    assert len(app.asked) == Limits().pipelined + 1


@pytest.mark.parametrize("version", [b"HTTP/1.0", b"HTTP/1.1\r\nConnection: close"])
def test_a_caller_that_wants_one_answer_gets_one(usual: Served, version: bytes) -> None:
    with usual.call() as caller:
        answer = caller.say(b"GET /a %b\r\nHost: h\r\n\r\n" % version).answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert caller.hung_up()


def test_a_caller_that_half_closes_still_gets_its_answer(usual: Served, app: Recorder) -> None:
    with usual.call() as caller:
        caller.say(GET.replace(b"/a", b"/wait"))
        assert app.waiting.wait(5)
        caller.socket.shutdown(1)
        app.gate.set()
        assert caller.answer().status == 200
        assert caller.hung_up()


def request_of(size: int) -> bytes:
    """A request whose request line and headers have exactly this many bytes."""
    head = b"GET /a HTTP/1.1\r\nHost: h\r\nX: \r\n\r\n"
    return head.replace(b"X: ", b"X: " + b"x" * (size - len(head)))


def test_a_head_of_exactly_32_kib_is_read(usual: Served) -> None:
    with usual.call() as caller:
        assert caller.say(request_of(32768)).answer().status == 200


@pytest.mark.parametrize("size", [32769, 200_000])
def test_a_longer_head_is_431_and_the_end(usual: Served, app: Recorder, size: int) -> None:
    with usual.call() as caller:
        answer = caller.say(request_of(size)).answer()
        assert answer.status == 431
        assert answer.headers["connection"] == "close"
        assert answer.headers["content-type"] == "application/json"
        assert answer.json["error"] == "invalid_request"
        assert "32768" in answer.json["error_description"]
        assert "reference" in answer.json["error_description"]
        assert caller.hung_up()
    assert app.asked == []


def test_a_long_head_behind_another_request_is_431_after_its_answer(usual: Served) -> None:
    with usual.call() as caller:
        caller.say(GET + request_of(40_000))
        assert [caller.answer().status, caller.answer().status] == [200, 431]
        assert caller.hung_up()


@pytest.mark.parametrize("unfinished", [b"GET /", b"GET /a HTTP/1.1\r\nX: ", b"GET /a HTTP/1.1\r\n"])
def test_an_unfinished_head_is_431_as_soon_as_it_is_too_long(usual: Served, unfinished: bytes) -> None:
    with usual.call() as caller:
        assert caller.say(unfinished + b"x" * 40_000).answer().status == 431


def test_too_many_header_fields_are_431(usual: Served) -> None:
    with usual.call() as caller:
        assert caller.say(b"GET /a HTTP/1.1\r\nHost: h\r\n" + b"a:\r\n" * 200 + b"\r\n").answer().status == 431


def test_a_body_of_exactly_64_kib_is_read(usual: Served) -> None:
    with usual.call() as caller:
        caller.say(b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 65536\r\n\r\n" + b"x" * 65536)
        assert caller.answer().body == b"/a 65536"


def test_a_longer_declared_body_is_413_before_any_of_it_was_sent(usual: Served, app: Recorder) -> None:
    with usual.call() as caller:
        caller.say(b"POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 65537\r\n\r\n")
        answer = caller.answer()
        assert (answer.status, answer.headers["connection"]) == (413, "close")
        assert answer.json["error"] == "invalid_request"
    assert app.asked == []


def test_a_caller_that_sends_its_long_body_all_the_same_can_read_the_413(usual: Served) -> None:
    with usual.call() as caller:
        caller.say(b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 500000\r\n\r\n" + b"x" * 500_000)
        assert caller.answer().status == 413
        assert caller.hung_up()


def test_a_longer_chunked_body_is_counted_and_413(usual: Served, app: Recorder) -> None:
    with usual.call() as caller:
        caller.say(
            b"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1000\r\n" + b"x" * 4096 + b"\r\n"
        )
        caller.say((b"1000\r\n" + b"x" * 4096 + b"\r\n") * 16)
        assert caller.answer().status == 413
        assert caller.hung_up()
    assert app.asked == []


def test_a_request_behind_a_refused_one_is_not_answered(usual: Served, app: Recorder) -> None:
    with usual.call() as caller:
        caller.say(b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 70000\r\n\r\n" + GET + GET)
        assert caller.answer().status == 413
        assert caller.hung_up()
    assert app.asked == []


def test_a_chunked_body_arrives_whole_and_its_trailers_are_no_headers(usual: Served, app: Recorder) -> None:
    with usual.call() as caller:
        caller.say(b"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n")
        caller.say(b"Authorization: DPoP stolen\r\n\r\n" + GET)
        assert [caller.answer().body, caller.answer().body] == [b"/a 5", b"/a 0"]
    assert app.asked[0].body == b"abcde"
    assert "authorization" not in app.asked[0].headers | app.asked[1].headers


def test_100_continue_is_said_when_a_body_is_welcome(usual: Served) -> None:
    with usual.call() as caller:
        caller.say(b"POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        assert caller.answer().status == 100
        assert caller.say(b"abc").answer().body == b"/a 3"


@pytest.mark.parametrize("begun", [b"G", b"GET /a HTTP/1.1\r\nHost: h\r\n", b"\r\n\r\n"])
def test_headers_that_do_not_arrive_in_time_are_408(impatient: Served, app: Recorder, begun: bytes) -> None:
    with impatient.call() as caller:
        answer = caller.say(begun).answer()
        assert (answer.status, answer.headers["connection"]) == (408, "close")
        assert answer.json["error_description"].startswith("The headers of the request did not arrive")
        assert caller.hung_up()
    assert app.asked == []


def test_a_body_that_does_not_arrive_in_time_is_408(impatient: Served, app: Recorder) -> None:
    with impatient.call() as caller:
        answer = caller.say(b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc").answer()
        assert answer.status == 408
        assert answer.json["error_description"].startswith("The body of the request did not arrive")
    assert app.asked == []


def test_our_own_working_time_does_not_count(impatient: Served, app: Recorder) -> None:
    with impatient.call() as caller, impatient.call() as other:
        caller.say(GET.replace(b"/a", b"/wait"))
        assert app.waiting.wait(5)
        assert other.say(b"G").answer().status == 408  # as much time has passed
        assert other.hung_up()
        with impatient.call() as third:
            assert third.say(b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n").answer().status == 408
        app.gate.set()
        assert caller.answer().status == 200


def test_an_idle_connection_is_closed_without_a_word(impatient: Served) -> None:
    with impatient.call() as silent, impatient.call() as caller:
        assert silent.hung_up()
        assert caller.hung_up()
    with impatient.call() as caller:
        assert caller.say(GET).answer().status == 200
        assert caller.hung_up()


@pytest.mark.full
def test_a_caller_that_does_not_read_its_answers_is_dropped(impatient: Served) -> None:
    caller = impatient.call()
    caller.say(b"GET /a HTTP/1.1\r\nHost: h\r\nX-Answer-Bytes: 20000000\r\n\r\n")
    with impatient.call() as other:  # two idle lives later
        assert other.say(GET).answer().status == 200
        assert other.hung_up()
    with impatient.call() as other:
        assert other.say(GET).answer().status == 200
        assert other.hung_up()
    with caller:
        assert len(caller.rest()) < 20_000_000


@pytest.mark.parametrize(
    "malformed",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET /a\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: h\r\nX: a\x00b\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost h\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: h\r\n X: folded\r\n\r\n",
        b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\nabc",
        b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, identity\r\n\r\nabc",
        b"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /a HTTP/0.9\r\nHost: h\r\n\r\n",
        b"GET /a HTTP/0.1\r\nHost: h\r\n\r\n",
        b"GET /a HTTP/1.10\r\nHost: h\r\n\r\n",
        b"GET /a HTTP/2\r\nHost: h\r\n\r\n",
        b"GET /a HTTP/x.y\r\nHost: h\r\n\r\n",
        b"GET /a http/1.1\r\nHost: h\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET * HTTP/1.1\r\nHost: h\r\n\r\n",
        b"OPTIONS *x HTTP/1.1\r\nHost: h\r\n\r\n",
        b"CONNECT /a HTTP/1.1\r\nHost: h\r\n\r\n",
        b"CONNECT other:443 HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET http:// HTTP/1.1\r\nHost: h\r\n\r\n",
        b"POST /\xff HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\nx",
    ],
)
def test_what_is_no_request_is_400_and_the_end(usual: Served, app: Recorder, malformed: bytes) -> None:
    with usual.call() as caller:
        answer = caller.say(malformed).answer()
        assert (answer.status, answer.headers["connection"]) == (400, "close")
        assert answer.json["error"] == "invalid_request"
        assert caller.hung_up()
    assert app.asked == []


@pytest.mark.parametrize("version", [b"2.0", b"2.1", b"3.0", b"9.9"])
@pytest.mark.parametrize("earlier", [b"", b"GET /first HTTP/1.1\r\nHost: h\r\n\r\n"])
def test_another_major_version_is_505_and_the_end(usual: Served, app: Recorder, version: bytes, earlier: bytes) -> None:
    """RFC 9110 §15.6.6: also in the same bytes as a request before it; a body is not read."""
    with usual.call() as caller:
        caller.say(earlier + b"POST /a HTTP/%b\r\nHost: h\r\nContent-Length: 3\r\n\r\nx=y" % version)
        if earlier:
            assert caller.answer().status == 200
        answer = caller.answer()
        assert (answer.status, answer.headers["connection"]) == (505, "close")
        assert answer.json["error"] == "invalid_request"
        assert "HTTP/1.1 only" in answer.json["error_description"]
        assert caller.hung_up()
    assert len(app.asked) == bool(earlier)


def test_a_higher_minor_version_is_handled_as_1_1(usual: Served, app: Recorder) -> None:
    """RFC 9110 §2.5, §6.2: the highest minor version that the recipient knows; the connection stays open."""
    with usual.call() as caller:
        for _ in range(2):
            caller.say(b"GET /a HTTP/1.2\r\nHost: h\r\n\r\n")
            assert caller.answer().status == 200
    assert len(app.asked) == 2


@pytest.mark.parametrize("codings", [b"gzip, chunked", b"gzip\r\nTransfer-Encoding: chunked"])
def test_a_body_in_another_transfer_coding_is_501_and_not_read_as_it_is(
    usual: Served, app: Recorder, codings: bytes
) -> None:
    """RFC 9112 §6.1"""
    with usual.call() as caller:
        caller.say(b"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: %b\r\n\r\n3\r\nx=y\r\n0\r\n\r\n" % codings)
        assert caller.answer().status == 501
        assert caller.hung_up()
    assert app.asked == []


def test_an_absolute_target_names_the_host(usual: Served, app: Recorder) -> None:
    """RFC 9112 §3.2.2"""
    with usual.call() as caller:
        assert caller.say(b"GET http://other:81/a?b HTTP/1.1\r\nHost: h\r\n\r\n").answer().body == b"/a 0"
    assert app.asked[0].headers["host"] == "other:81"
