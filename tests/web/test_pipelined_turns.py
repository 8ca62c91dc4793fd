"""Pipelined requests take turns with other connections (D47): counted, never timed."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

from corpid.web.http.connections import PIPELINED_AT_ONCE, Limits
from tests.web.served import PATIENCE, Recorder, served

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

CONNECTIONS = 100
LOOP_TURNS = 10
"""that a request such as /readyz may take, which waits for engines"""
GET = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n"


class Counting(Recorder):
    """An application that counts requests which begin while one takes some turns of the event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.blocked = threading.Event()
        self.everything_sent = threading.Event()
        self.began_meanwhile = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/block":
            self.blocked.set()
            assert self.everything_sent.wait(PATIENCE)
        elif scope["path"] == "/turns":
            before = len(self.asked)
            for _ in range(LOOP_TURNS):
                await asyncio.sleep(0)
            self.began_meanwhile = len(self.asked) - before
        await super().__call__(scope, receive, send)


def test_a_few_pipelined_requests_of_all_connections_begin_while_another_waits_for_its_turn() -> None:
    """Those that no request of their connection precedes may all begin; of the others a few in each turn of the loop."""
    app, each = Counting(), Limits().pipelined + 1
    with served(app) as running, ExitStack() as stack:
        blocking, other, *callers = [stack.enter_context(running.call()) for _ in range(CONNECTIONS + 2)]
        for caller in (other, *callers):
            assert caller.say(GET).answer().status == 200
        blocking.say(GET.replace(b"/a", b"/block"))
        assert app.blocked.wait(PATIENCE)
        for caller in callers:
            caller.say(GET * each)
        other.say(GET.replace(b"/a", b"/turns"))
        app.everything_sent.set()
        assert other.answer().status == 200
        assert app.began_meanwhile <= CONNECTIONS + (LOOP_TURNS + 1) * PIPELINED_AT_ONCE
        for caller in callers:
            assert [caller.answer().body for _ in range(each)] == [b"/a 0"] * each
    assert len(app.asked) == 3 + CONNECTIONS * (each + 1)
