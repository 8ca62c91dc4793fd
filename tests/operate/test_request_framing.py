"""Requests whose end two programs could see differently, through the shipped proxies to the server and without one.

One table for every way in. Of each probe: every request that reaches the application is answered to the caller who sent it,
in its place; what is part of a body is never a request; and other callers, who get the same connections between proxy
and server afterwards, receive their own answers.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.machine import free_port
from tests.operate.certificates import certified
from tests.operate.proxies import SHIPPED, proxy
from tests.web.served import served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.types import Receive, Scope, Send

pytestmark = pytest.mark.full

DIRECTLY = "no proxy"
PATIENCE = 10.0
QUIET_SECONDS = 1.0
"""after which nothing more is expected from who waits for the rest of a request"""
UNREAD, STREAMED = "/unread", "/streamed"
MARK = b"x-application"


class Application:
    """Answers with path and length of the body; at UNREAD and STREAMED without having read it."""

    def __init__(self) -> None:
        self.reached: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, length = scope["path"], 0
        more = path not in {UNREAD, STREAMED}
        while more:
            message = await receive()
            length += len(message.get("body", b""))
            more = message.get("more_body", False)
        if path != "/readyz":
            self.reached.append(path)
        answer = f"{path} {length}".encode()
        headers = [(b"content-length", b"%d" % len(answer)), (MARK, b"yes")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


class Answer(NamedTuple):
    status: int
    path: str
    """that the application has answered; empty if it was somebody else"""


@dataclass
class Front:
    """A way to the application."""

    application: Application
    connect: Callable[[], socket.socket]

    def say(self, said: bytes, later: bytes = b"") -> list[Answer]:
        """Send it on one connection, and the rest after an answer; what is answered until it ends, or nothing more comes."""
        heard = b""
        with self.connect() as connection, suppress(TimeoutError, ConnectionResetError, BrokenPipeError, ssl.SSLError):
            connection.sendall(said)
            connection.settimeout(QUIET_SECONDS)
            if later:
                with suppress(TimeoutError):  # nobody answers before the whole request is there
                    heard += connection.recv(1 << 16)
                connection.sendall(later)
            while received := connection.recv(1 << 16):
                heard += received
        return list(answers(heard))

    def bystander(self, *paths: str) -> list[Answer]:
        """What somebody else is answered, on one connection."""
        first, last = paths
        return self.say(request("GET", first) + request("GET", last, "Connection: close"))


def answers(heard: bytes) -> Iterator[Answer]:
    """The whole answers in what was received."""
    if heard and not heard.startswith(b"HTTP/"):  # to a request without a version: a body and nothing else
        yield Answer(200, heard.decode().split(" ")[0])
        return
    while heard:
        head, _, heard = heard.partition(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        status = int(first.split(b" ")[1])
        if status == 100:
            continue
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
        length = int(fields.get(b"content-length", b"0"))
        body, heard = heard[:length], heard[length:]
        yield Answer(status, body.decode().split(" ")[0] if MARK in fields else "")


def is_part(reached: list[str], seen: tuple[str, ...]) -> bool:
    """Whether these are some of those, in their order."""
    ahead = iter(seen)
    return all(path in ahead for path in reached)


def request(method: str, target: str, *lines: str, body: bytes = b"", version: str = "1.1") -> bytes:
    """A request of a Host and these lines."""
    head = "".join(f"{line}\r\n" for line in ("Host: localhost", *lines))
    return f"{method} {target} HTTP/{version}\r\n{head}\r\n".encode("latin-1") + body


def length(body: bytes) -> str:
    return f"Content-Length: {len(body)}"


CHUNKED = "Transfer-Encoding: chunked"
LAST = request("GET", "/last", "Connection: close")
SMUGGLED = request("POST", "/smuggled", "Content-Length: 0")
SECOND = request("POST", "/second", "Content-Length: 0")
FIRST_OR_TWO = (("/first", "/last"), ("/first", "/second", "/last"))
ENDED = b"0\r\n\r\n"
BY_LENGTH = ENDED + SECOND
"""one body by its length, and a whole body and a request by its chunks"""
WITHIN = b"%x\r\n%b\r\n" % (len(SMUGGLED), SMUGGLED) + ENDED
"""a request in a chunk"""


class Probe(NamedTuple):
    said: bytes
    may: tuple[tuple[str, ...], ...] = (("/first", "/last"),)
    """the requests that may be seen in it; some of them, where somebody refuses others"""
    must: bool = False
    """whether they are all answered, everywhere"""
    later: bytes = b""
    """sent after the answer to the first one"""


def either(*lines: str) -> Probe:
    """A first request with the length of a body that its chunks would end earlier: whoever takes it must say so."""
    return Probe(request("POST", "/first", length(BY_LENGTH), *lines, body=BY_LENGTH) + LAST, FIRST_OR_TWO)


def refused(*lines: str, body: bytes = b"hello") -> Probe:
    """A first request whose end nobody can know."""
    return Probe(request("POST", "/first", *lines, body=body) + LAST, ((),))


def taken(*said: bytes, seen: tuple[str, ...] = ("/first", "/last")) -> Probe:
    """Requests that everybody takes."""
    return Probe(b"".join(said) + LAST, (seen,), must=True)


def first(*lines: str, body: bytes = b"", version: str = "1.1") -> bytes:
    return request("POST", "/first", *lines, body=body, version=version)


PROBES = {
    # one request after the other
    "a second request in the same bytes": taken(first("Content-Length: 0"), SECOND, seen=("/first", "/second", "/last")),
    "ten requests in the same bytes": taken(*[SECOND] * 10, seen=("/second",) * 10 + ("/last",)),
    "a request as a body": taken(first(length(SMUGGLED), body=SMUGGLED)),
    "a request as the body of a GET": taken(request("GET", "/first", length(SMUGGLED), body=SMUGGLED)),
    "a request in a chunk": taken(first(CHUNKED, body=WITHIN)),
    "trailing bytes": Probe(first("Content-Length: 5", body=b"hello") + b"zz" + LAST, (("/first",),)),
    "trailing line ends": Probe(first("Content-Length: 5", body=b"hello") + b"\r\n\r\n" + LAST),
    # length and chunks
    "length, then chunked": either(CHUNKED),
    "chunked, then length": Probe(first(CHUNKED, length(BY_LENGTH), body=BY_LENGTH) + LAST, FIRST_OR_TWO),
    "a request in a chunk beyond the length": Probe(first("Content-Length: 4", CHUNKED, body=WITHIN) + LAST),
    "length of 0 and a request in a chunk": Probe(first("Content-Length: 0", CHUNKED, body=WITHIN) + LAST),
    # lengths
    "two equal lengths": Probe(first("Content-Length: 5", "Content-Length: 5", body=b"hello") + LAST),
    "two lengths": refused("Content-Length: 0", length(SMUGGLED), body=SMUGGLED),
    "two lengths, the other way": refused(length(SMUGGLED), "Content-Length: 0", body=SMUGGLED),
    "a list of equal lengths": Probe(first("Content-Length: 5, 5", body=b"hello") + LAST),
    "a list of lengths": refused(f"Content-Length: 0, {len(SMUGGLED)}", body=SMUGGLED),
    "a length with a sign": refused(f"Content-Length: +{len(SMUGGLED)}", body=SMUGGLED),
    "a negative length": refused("Content-Length: -5"),
    "a length in hexadecimal": refused("Content-Length: 0x5"),
    "a length with a space in it": refused("Content-Length: 5 5"),
    "a length of nothing": refused("Content-Length:"),
    "a length beyond 64 bits": refused("Content-Length: 18446744073709551621"),
    "a length with a space before the colon": refused("Content-Length : 5"),
    "a length with an underscore": Probe(first(length(SMUGGLED), "Content_Length: 0", body=SMUGGLED) + LAST),
    "a length named by Connection": Probe(first("Connection: Content-Length", length(SMUGGLED), body=SMUGGLED) + LAST),
    # names of the coding
    "chunked in capitals": taken(first("TRANSFER-ENCODING: CHUNKED", body=WITHIN)),
    "a tab before chunked": Probe(first("Transfer-Encoding:\tchunked", body=WITHIN) + LAST),
    "no space before chunked": taken(first("Transfer-Encoding:chunked", body=WITHIN)),
    "a space before the colon": either("Transfer-Encoding : chunked"),
    "a tab before the colon": either("Transfer-Encoding\t: chunked"),
    "a space before the name": either(" Transfer-Encoding: chunked"),
    "a folded line": either("X-Folded: one", " Transfer-Encoding: chunked"),
    "a folded value": either("Transfer-Encoding:", " chunked"),
    "a vertical tab before chunked": either("Transfer-Encoding: \x0bchunked"),
    "a null after chunked": either("Transfer-Encoding: chunked\x00"),
    "a bare CR before the coding": either("X-Bare: one\rTransfer-Encoding: chunked"),
    "a bare LF before the coding": either("X-Bare: one\nTransfer-Encoding: chunked"),
    "quoted": either('Transfer-Encoding: "chunked"'),
    "another coding": either("Transfer-Encoding: xchunked"),
    "identity": either("Transfer-Encoding: identity"),
    "chunked, identity": either("Transfer-Encoding: chunked, identity"),
    "identity, chunked": either("Transfer-Encoding: identity, chunked"),
    "gzip, chunked": either("Transfer-Encoding: gzip, chunked"),
    "chunked twice": either("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
    "chunked and another": either("Transfer-Encoding: chunked", "Transfer-Encoding: cow"),
    "another and chunked": either("Transfer-Encoding: cow", "Transfer-Encoding: chunked"),
    "a coding with an underscore": Probe(first(length(BY_LENGTH), "Transfer_Encoding: chunked", body=BY_LENGTH) + LAST),
    "a coding named by Connection": Probe(first(f"Connection: {CHUNKED.split(':', maxsplit=1)[0]}", CHUNKED, body=WITHIN) + LAST),
    # chunks
    "a chunk's extension": taken(first(CHUNKED, body=b"5;name=value\r\nhello\r\n" + ENDED)),
    "a quoted extension": Probe(first(CHUNKED, body=b'5;name="a b"\r\nhello\r\n' + ENDED) + LAST),
    "an extension with a bare LF": Probe(first(CHUNKED, body=b"5;\nhello\r\n" + ENDED) + LAST),
    "a size with a bare LF": Probe(first(CHUNKED, body=b"5\nhello\r\n" + ENDED) + LAST),
    "a size with a space": Probe(first(CHUNKED, body=b"5 \r\nhello\r\n" + ENDED) + LAST),
    "a size in 0x": refused(CHUNKED, body=b"0x5\r\nhello\r\n" + ENDED),
    "a size with a sign": refused(CHUNKED, body=b"+5\r\nhello\r\n" + ENDED),
    "a negative size": refused(CHUNKED, body=b"-5\r\nhello\r\n" + ENDED),
    "a size with zeros before it": Probe(first(CHUNKED, body=b"0000000005\r\nhello\r\n" + ENDED) + LAST),
    "a size beyond 64 bits": refused(CHUNKED, body=b"10000000000000005\r\nhello\r\n" + ENDED),
    "the greatest size": refused(CHUNKED, body=b"ffffffffffffffff\r\nhello\r\n" + ENDED),
    "a size beyond 32 bits": refused(CHUNKED, body=b"100000005\r\nhello\r\n" + ENDED),
    "no size": refused(CHUNKED, body=b"\r\nhello\r\n" + ENDED),
    "more than the size": refused(CHUNKED, body=b"5\r\nhelloX\r\n" + ENDED),
    "a chunk that ends with a bare LF": Probe(first(CHUNKED, body=b"5\r\nhello\n" + ENDED) + LAST),
    "a last chunk with bare LFs": Probe(first(CHUNKED, body=b"5\r\nhello\r\n0\n\n") + LAST),
    "trailers": Probe(first(CHUNKED, body=b"5\r\nhello\r\n0\r\nX-Trailer: one\r\n\r\n") + LAST),
    "a length in a trailer": Probe(first(CHUNKED, body=b"5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n") + LAST),
    # line ends and targets
    "a head with bare LFs": Probe(b"POST /first HTTP/1.1\nHost: localhost\nContent-Length: 0\n\n" + LAST),
    "a folded field": Probe(first("X-Folded: one", "\ttwo", "Content-Length: 0") + LAST),
    "the absolute form": taken(request("POST", "http://localhost/first", "Content-Length: 0")),
    "the absolute form of another host": Probe(request("POST", "http://elsewhere/first", "Content-Length: 0") + LAST),
    "a target with a space": Probe(request("POST", "/first /last", "Content-Length: 0") + LAST, ((),)),
    "no version": Probe(b"GET /first\r\n\r\n" + LAST, (("/first",),)),
    # versions, Expect, upgrades
    "HTTP/1.0 that keeps alive": Probe(first("Connection: keep-alive", "Content-Length: 0", version="1.0") + LAST),
    "HTTP/1.0 with chunks": Probe(
        first("Connection: keep-alive", CHUNKED, length(BY_LENGTH), body=BY_LENGTH, version="1.0") + LAST, FIRST_OR_TWO
    ),
    "HTTP/1.2": Probe(first("Content-Length: 0", version="1.2") + LAST),
    "Expect": taken(first("Expect: 100-continue", length(SMUGGLED), body=SMUGGLED)),
    "Expect of nothing": Probe(first("Expect: 100-continue", "Content-Length: 0") + LAST),
    "another Expect": Probe(first("Expect: x 100-continue", length(SMUGGLED), body=SMUGGLED) + LAST),
    "an upgrade": Probe(
        first("Connection: Upgrade", "Upgrade: websocket", length(SMUGGLED), body=SMUGGLED) + LAST
    ),
    "an upgrade to HTTP/2": Probe(
        first(
            "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA",
            length(SMUGGLED), body=SMUGGLED,
        ) + LAST
    ),
    # bodies that the server does not read, and then ends its connection with the proxy
    "an unread body": Probe(request("POST", UNREAD, length(SMUGGLED), body=SMUGGLED) + LAST, ((UNREAD, "/last"),)),
    "an unread chunk": Probe(request("POST", UNREAD, CHUNKED, body=WITHIN) + LAST, ((UNREAD, "/last"),)),
    "an unread body that comes later": Probe(
        request("POST", UNREAD, length(SMUGGLED)), ((UNREAD, "/last"),), later=SMUGGLED + LAST
    ),
    "an unread chunk that comes later": Probe(
        request("POST", UNREAD, CHUNKED), ((UNREAD, "/last"),), later=WITHIN + LAST
    ),
    "a body that is left, and comes later": Probe(
        request("POST", STREAMED, length(SMUGGLED)), ((STREAMED, "/last"),), later=SMUGGLED + LAST
    ),
    "an unread body with Expect": Probe(
        request("POST", UNREAD, "Expect: 100-continue", length(SMUGGLED), body=SMUGGLED) + LAST, ((UNREAD, "/last"),)
    ),
    "a body that is left": Probe(request("POST", STREAMED, length(SMUGGLED), body=SMUGGLED) + LAST, ((STREAMED, "/last"),)),
    "a chunk that is left": Probe(request("POST", STREAMED, CHUNKED, body=WITHIN) + LAST, ((STREAMED, "/last"),)),
}  # fmt: skip


@contextmanager
def opened(name: str, application: Application, directory: pytest.TempPathFactory) -> Iterator[Front]:
    with served(application, bodiless={UNREAD}, streamed={STREAMED}) as running:
        if name == DIRECTLY:
            yield Front(application, lambda: socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE))
            return
        folder = directory.mktemp(name)
        own, ports = certified(folder / "tls"), (free_port(), free_port())
        trusting = ssl.create_default_context(cafile=str(own.authority))

        def connect() -> socket.socket:
            plain = socket.create_connection(("127.0.0.1", ports[0]), timeout=PATIENCE)
            return trusting.wrap_socket(plain, server_hostname="localhost")

        with proxy(name, folder / "proxy", own, ports=ports, nodes=[running.port] * 2):
            yield Front(application, connect)


@pytest.fixture(scope="module", params=[DIRECTLY, *SHIPPED])
def front(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    application = Application()
    with opened(request.param, application, tmp_path_factory) as front:
        yield front


@pytest.mark.parametrize("name", PROBES)
def test_proxy_and_server_agree_on_the_requests_in_it(front: Front, name: str) -> None:
    """RFC 9112 §6.3, §7.1, §11.2: nothing is smuggled past a proxy, nor answered to another caller."""
    probe, application = PROBES[name], front.application
    application.reached.clear()
    said = front.say(probe.said, probe.later)
    paths = [answer.path for answer in said if answer.path]
    reached = list(application.reached)
    others = [front.bystander("/other/1", "/other/2") for _ in range(2)]
    assert others == [[Answer(200, "/other/1"), Answer(200, "/other/2")]] * 2
    assert [path for path in application.reached if not path.startswith("/other/")] == reached, "later than its caller"
    assert paths == reached, said
    assert any(is_part(reached, seen) for seen in probe.may), said
    if probe.must:
        assert tuple(reached) in probe.may, said
