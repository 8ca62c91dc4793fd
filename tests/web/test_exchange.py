"""What a connection makes of the responses of an application, right and wrong ones (RFC 9112, ASGI)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.web.served import served

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

GET = b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEAD = b"HEAD /a HTTP/1.1\r\nHost: localhost\r\n\r\n"


def start(status: int = 200, *headers: tuple[bytes, bytes]) -> Message:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def body(content: bytes, *, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": content, "more_body": more}


def sending(*messages: Message, then: Callable[[], Any] = lambda: None) -> ASGIApp:
    """An application that sends these messages, and then does something."""

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise NotImplementedError
        for message in messages:
            await send({**message})
        then()

    return app


def heard(app: ASGIApp, said: bytes = GET) -> bytes:
    """Everything that comes until the connection ends, after two requests at most."""
    with served(app) as running, running.call() as caller:
        caller.say(said.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        return caller.rest()


def test_a_response_without_a_length_is_sent_in_chunks() -> None:
    """RFC 9112 §7.1."""
    answer = heard(sending(start(), body(b"one", more=True), body(b""), then=lambda: None))
    assert b"transfer-encoding: chunked\r\n" in answer
    assert answer.endswith(b"\r\n\r\n3\r\none\r\n0\r\n\r\n")


def test_a_response_to_head_and_one_without_content_have_no_body() -> None:
    """RFC 9110 §9.3.2, §15.3.5."""
    answer = heard(sending(start(200, (b"content-length", b"3")), body(b"one")), HEAD)
    assert answer.endswith(b"content-length: 3\r\nconnection: close\r\n\r\n")
    assert heard(sending(start(204), body(b""))).endswith(b"connection: close\r\n\r\n")


@pytest.mark.parametrize("header", [(b"a", b"b\r\nset-cookie: c"), (b"a", b"b\nc"), (b"a b", b"c"), (b"a:", b"c")])
def test_a_header_that_would_split_a_response_is_not_sent(header: tuple[bytes, bytes]) -> None:
    """RFC 9112 §11.1."""
    answer = heard(sending(start(200, header, (b"content-length", b"0")), body(b"")))
    assert b"set-cookie" not in answer
    assert not answer.startswith(b"HTTP/1.1 200")


def test_an_application_that_fails_before_it_answers_is_a_500() -> None:
    def fail() -> None:
        raise RuntimeError("a fault")

    assert heard(sending(then=fail)).startswith(b"HTTP/1.1 500 ")
    assert heard(sending()).startswith(b"HTTP/1.1 500 ")


@pytest.mark.parametrize(
    "messages",
    [
        (start(200, (b"content-length", b"5")), body(b"one")),
        (start(200, (b"content-length", b"5")), body(b"one", more=True)),
        (start(200, (b"content-length", b"2")), body(b"one")),
        (start(200, (b"content-length", b"5")),),
    ],
    ids=["too short", "unfinished", "too long", "no body"],
)
def test_a_response_that_is_not_whole_ends_the_connection(messages: tuple[Message, ...]) -> None:
    """The caller must not take it for whole, nor wait for the rest (RFC 9112 §8)."""
    with served(sending(*messages)) as running, running.call() as caller:
        answer = caller.say(GET).rest()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert len(answer.partition(b"\r\n\r\n")[2]) != int(answer.partition(b"content-length: ")[2][:1])
