"""Workers that accept on one socket share its connections evenly."""

from __future__ import annotations

import asyncio
import socket

import pytest

from corpid.web.http.connections import ConnectionShare, ConnectionShares
from corpid.web.http.server import Server, bind
from tests.web.served import Recorder

CONNECTIONS = 40


def shares(*counts: int) -> list[ConnectionShare]:
    """Those of workers that accept and have so many connections each."""
    every = ConnectionShares(len(counts))
    of = [every.share_of(place) for place in range(len(counts))]
    for share, count in zip(of, counts, strict=True):
        share.begin()
        share.note(count)
    return of


@pytest.mark.parametrize(
    ("own", "others", "exceeded"),
    [(0, 0, False), (4, 0, False), (5, 0, True), (11, 7, False), (12, 7, True), (90, 80, False), (91, 80, True)],
)
def test_a_share_is_exceeded_beyond_four_and_an_eighth_more_than_the_least(
    own: int, others: int, exceeded: bool
) -> None:
    of = shares(own, others, others + 1)
    assert of[0].is_exceeded is exceeded


def test_a_worker_that_does_not_accept_takes_no_part() -> None:
    """Neither before it has started, nor after it began to stop, nor after it was killed and replaced."""
    every = ConnectionShares(2)
    here, other = every.share_of(0), every.share_of(1)
    here.begin()
    here.note(9)
    other.note(0)
    assert not here.is_exceeded, "it has not started"
    other.begin()
    assert here.is_exceeded
    other.end()
    other.note(0)
    assert not here.is_exceeded, "it is stopping"
    other.begin()
    every.free(1)
    assert not here.is_exceeded, "it was killed"
    here.end()
    assert not here.is_exceeded, "nobody accepts"


async def _opened(servers: list[Server], listening: socket.socket) -> list[int]:
    """How many connections each server has accepted of a burst."""
    with listening:
        for server in servers:
            await server.start([listening.dup()])
        callers = [socket.create_connection(listening.getsockname()) for _ in range(CONNECTIONS)]
    async with asyncio.timeout(10):
        while sum(len(server.open_connections) for server in servers) < CONNECTIONS:  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.01)
    found = [len(server.open_connections) for server in servers]
    for caller in callers:
        caller.close()
    for server in servers:
        server.force()
        await server.stop()
    return found


@pytest.mark.parametrize("workers", [2, 3])
async def test_connections_that_a_proxy_opens_together_are_shared(workers: int) -> None:
    every = ConnectionShares(workers)
    (listening,) = bind("127.0.0.1", 0)

    found = await _opened([Server(Recorder(), share=every.share_of(place)) for place in range(workers)], listening)
    assert min(found) >= CONNECTIONS // workers // 2, "none has much less than its share"


async def test_connections_that_no_other_worker_accepts_are_accepted_all_the_same() -> None:
    """It may be busy for seconds, or was killed this moment."""
    every = ConnectionShares(2)
    every.share_of(1).begin()
    (listening,) = bind("127.0.0.1", 0)

    assert (await _opened([Server(Recorder(), share=every.share_of(0))], listening)) == [CONNECTIONS]
