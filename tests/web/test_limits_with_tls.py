"""The limits of a connection are the same with and without our own TLS (D47)."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from corpid.web.http.server import server_context
from tests.web.served import PATIENCE, SHORT, Caller, Recorder, served
from tests.web.test_tls import trusting, write_pair

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from pathlib import Path

GET = b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
CHUNKED = b"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
BROKEN: dict[str, tuple[bytes, int]] = {
    "a declared body": (POST % 65_537, 413),
    "a body sent all the same": (POST % 200_000 + b"x" * 200_000, 413),
    "a body in chunks": (CHUNKED + (b"1000\r\n" + b"x" * 4096 + b"\r\n") * 17, 413),
    "a header": (b"GET /a HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 33_000 + b"\r\n\r\n", 431),
    "a request line": (b"GET /" + b"x" * 33_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 431),
    "headers without an end": (b"GET /a HTTP/1.1\r\n" + b"x: y\r\n" * 6000, 431),
    "many headers": (b"GET /a HTTP/1.1\r\nHost: localhost\r\n" + b"a:\r\n" * 200 + b"\r\n", 431),
    "a head that does not arrive": (b"GET /a HTTP/1.1\r\nHost: local", 408),
    "a body that does not arrive": (POST % 9 + b"abc", 408),
    "no request at all": (b"\x00\x01\x02\r\n\r\n", 400),
}


@pytest.fixture(scope="module", params=["http", "https"])
def call(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Caller]]:
    """Calls a server with short times, over TLS or without."""
    own_tls: ssl.SSLContext | None = None
    caller_tls: ssl.SSLContext | None = None
    if request.param == "https":
        pair = write_pair(tmp_path_factory.mktemp("tls"))
        own_tls, caller_tls = server_context(*pair), trusting(pair[0])
    short = replace(SHORT, body_seconds=0.4, idle_seconds=0.25, linger_seconds=0.25)
    with served(Recorder(), limits=short, tls=own_tls) as running:
        yield lambda: running.call(tls=caller_tls)


@pytest.mark.parametrize(("sent", "status"), BROKEN.values(), ids=BROKEN)
def test_a_request_beyond_a_limit_is_refused_in_json_and_the_connection_ends(
    call: Callable[[], Caller], sent: bytes, status: int
) -> None:
    """D47: 413, 431, 408; D32: in JSON."""
    with call() as caller:
        answer = caller.say(sent).answer()
        assert (answer.status, answer.headers["connection"]) == (status, "close")
        assert answer.json["error"] == "invalid_request"
        assert caller.hung_up()


def test_within_the_limits_a_request_is_answered_and_an_idle_connection_then_closed(call: Callable[[], Caller]) -> None:
    with call() as caller:
        caller.say(POST % 65_536 + b"x" * 65_536)
        assert caller.answer().body == b"/a 65536"
        assert caller.say(GET).answer().status == 200
        assert caller.hung_up()


def test_a_caller_that_never_shakes_hands_is_hung_up_on(tmp_path: Path) -> None:
    """D47: the time for a head is the time for a handshake, too."""
    with (
        served(Recorder(), limits=SHORT, tls=server_context(*write_pair(tmp_path))) as running,
        socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE) as silent,
    ):
        assert silent.recv(1) == b""
