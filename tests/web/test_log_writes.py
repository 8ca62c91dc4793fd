"""How lines of the log leave the process: together, whole, in order (docs/observability.md, "Log")."""

from __future__ import annotations

import asyncio
import io
from select import PIPE_BUF
from time import time
from typing import Any

from corpid.web.http.middleware import Middleware
from corpid.web.telemetry import access_log
from tests.web.test_middleware import JSON, answering, asked, log_of, logged, ready


class CountedStream(io.BytesIO):
    """A log that knows how much each write brought."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[int] = []

    def write(self, content: Any) -> int:
        self.writes.append(len(content))
        return super().write(content)


async def turns(stream: Any) -> None:
    for number in range(3):
        access_log.log().info("event", detail=str(number))
    assert stream.writes == []
    await asyncio.sleep(0)
    assert len(stream.writes) == 1
    access_log.log().info("event", detail="3")


def test_the_lines_of_one_turn_of_the_loop_leave_in_one_write_and_in_order() -> None:
    """A log that is cheap under load loses nothing, and mixes nothing up."""
    stream = CountedStream()

    with log_of(stream=stream):
        asyncio.run(turns(stream))
        access_log.log().info("event", detail="4")
    assert len(stream.writes) == 3
    assert [line["detail"] for line in logged(stream)] == ["0", "1", "2", "3", "4"]


async def turn() -> None:
    for number in range(200):
        access_log.log().info("event", detail=str(number))


def test_a_write_of_the_log_is_never_more_than_a_pipe_takes_whole() -> None:
    """Processes that share a pipe never write into each other's lines."""
    stream = CountedStream()

    with log_of(stream=stream):
        asyncio.run(turn())
    assert 1 < len(stream.writes) < 20
    assert max(stream.writes) <= PIPE_BUF
    assert [line["detail"] for line in logged(stream)] == [str(number) for number in range(200)]


async def a_log_that_cannot_be_written_ends_neither_the_request_nor_in_a_circle() -> None:
    access_log.log().info("event")
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_log_that_cannot_be_written_ends_neither_the_request_nor_in_a_circle() -> None:
    """The reader of a pipe may have gone; requests are answered all the same."""

    class Gone(CountedStream):
        def write(self, content: Any) -> int:
            super().write(content)
            raise BrokenPipeError

    stream = Gone()

    with log_of(stream=stream):
        asyncio.run(a_log_that_cannot_be_written_ends_neither_the_request_nor_in_a_circle())
        assert (
            asked(Middleware(answering(JSON), base_url="https://idp.example", ready=ready, clock=time)).status_code
            == 200
        )
    assert len(stream.writes) == 2


async def next_one() -> None:
    access_log.log().info("event", detail="next")


def test_a_loop_that_ends_before_its_turn_loses_no_line() -> None:
    """Whatever writes next brings what was left."""
    stream = CountedStream()

    def last() -> None:
        access_log.log().info("event", detail="left")
        loop.stop()

    with log_of(stream=stream):
        loop = asyncio.new_event_loop()
        loop.call_soon(last)
        loop.run_forever()
        loop.close()
        asyncio.run(next_one())
    assert [line["detail"] for line in logged(stream)] == ["left", "next"]
