"""What stands between a provider and a relying party, so that a test can make the provider dishonest once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass
class Wire:
    """Notes every exchange, and changes what it is told to.

    `requests` and `responses` map the last part of a path to what becomes of the body.
    """

    app: ASGIApp
    requests: dict[str, Callable[[bytes], bytes]] = field(default_factory=dict)
    responses: dict[str, Callable[[bytes], bytes]] = field(default_factory=dict)
    exchanges: list[tuple[str, int]] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        name = scope["path"].rsplit("/", 1)[-1]
        if name in self.requests:
            body = self.requests[name](await _whole(receive))
            kept = [pair for pair in scope["headers"] if pair[0] != b"content-length"]
            scope = {**scope, "headers": [*kept, (b"content-length", b"%d" % len(body))]}
            receive = _said(body)
        return await self.app(scope, receive, self._answering(name, send))

    def _answering(self, name: str, send: Send) -> Send:
        started: list[Message] = []

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.exchanges.append((name, message["status"]))
                started.append(message)
            elif name not in self.responses or started[0]["status"] >= 400:
                await _both(send, started, message)
            else:
                assert not message.get("more_body")
                body = self.responses[name](message["body"])
                kept = [pair for pair in started[0]["headers"] if pair[0].lower() != b"content-length"]
                started[0] = {**started[0], "headers": [*kept, (b"content-length", b"%d" % len(body))]}
                await _both(send, started, {**message, "body": body})

        return answer

    def honest(self) -> None:
        self.requests.clear()
        self.responses.clear()
        self.exchanges.clear()


async def _whole(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if not message.get("more_body"):
            return body


def _said(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _both(send: Send, started: list[Message], message: Message) -> None:
    while started:
        await send(started.pop(0))
    await send(message)
