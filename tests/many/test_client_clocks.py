"""Two nodes whose engine lost its data: a client whose clock is known signs in after seconds, and nothing twice (D67)."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import asyncpg
import httpx
import pytest

from corpid.rules.data_loss import KNOWN_AFTER_SECONDS
from tests.engines import RedisServer, postgresql
from tests.many.nodes import Person, running, signed_in, within
from tests.many.test_data_loss import at, lose, recovering
from tests.web.processes import KEYS

if TYPE_CHECKING:
    from pathlib import Path

    from corpid_dev.relying_party.relying_party import RelyingParty

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

BETWEEN_ROUNDS = 0.5
"""seconds in which other tests have the processors, while everything is sent again and again"""
KNOWN_SECONDS = 10
UNKNOWN_SECONDS = 40
AHEAD = 4
"""seconds by which the clock of the known relying party is ahead"""


@pytest.mark.parametrize(("program", "how"), [("redis", "restart"), ("valkey", "restart"), ("valkey", "empty")])
async def test_a_client_whose_clock_is_known_goes_on_within_ten_seconds_and_nothing_is_spent_twice(
    tmp_path: Path, program: str, how: str
) -> None:
    """D67: every captured assertion is sent again to both nodes until long after the loss."""
    with RedisServer(program=program) as server, postgresql() as database:
        time.sleep(2)  # an engine that is no older than the deployment might have forgotten something of it
        with running(tmp_path, database, server.url, count=2) as nodes:
            async with signed_in(nodes) as person:
                rp = person.party(0)
                rp.clock = lambda: time.time() + AHEAD
                captured = [await accepted(person, rp, number % 2) for number in range(8)]
                await older(database)
                captured += [await accepted(person, rp, number % 2) for number in range(8)]
                begun = time.monotonic()
                await asyncio.to_thread(lose, server, how)
                lost_at = time.monotonic()
                await within(KNOWN_SECONDS, lambda: recovering(person))  # an emptied engine is noticed after a second
                captured.append(await accepted(person, rp, 0))
                known = time.monotonic() - lost_at
                assert known <= KNOWN_SECONDS
                while time.monotonic() < begun + UNKNOWN_SECONDS:
                    for assertion in captured:
                        for number in (0, 1):
                            answer = await sent(person, rp, number, assertion)
                            assert answer.status_code in {401, 503}, answer.text
                    await asyncio.sleep(BETWEEN_ROUNDS)


async def test_a_node_that_stands_still_across_the_loss_accepts_nothing_of_before_when_it_goes_on(
    tmp_path: Path,
) -> None:
    """It has requests in its hands that came before the loss, and knows nothing of it; the other node has gone on."""
    with RedisServer() as server, postgresql() as database:
        time.sleep(2)
        with running(tmp_path, database, server.url, count=2) as nodes:
            async with signed_in(nodes) as person:
                rp, slow = person.party(0), person.party(1)
                await accepted(person, rp, 0)
                await accepted(person, slow, 1)
                await older(database)
                captured = [
                    await accepted(person, each, number) for number, each in enumerate((rp, slow)) for _ in range(4)
                ]
                late = [rp.assertion(key=KEYS.signing) for _ in range(4)]
                person.https[1].timeout = httpx.Timeout(60)
                os.kill(person.nodes.processes[1], signal.SIGSTOP)
                try:
                    held = [asyncio.create_task(sent(person, slow, 1, assertion)) for assertion in (*captured, *late)]
                    await asyncio.sleep(0.5)
                    await asyncio.to_thread(lose, server, "empty")
                    captured.append(await accepted(person, rp, 0))
                    assert all([(await sent(person, rp, 0, assertion)).status_code == 503 for assertion in late])
                finally:
                    os.kill(person.nodes.processes[1], signal.SIGCONT)
                for answer in await asyncio.gather(*held):
                    assert answer.status_code in {401, 503}, answer.text
                end = time.monotonic() + KNOWN_SECONDS
                while time.monotonic() < end:
                    for assertion in (*captured, *late):
                        for number, each in enumerate((rp, slow)):
                            answer = await sent(person, each, number, assertion)
                            assert answer.status_code in {401, 503}, answer.text
                    await asyncio.sleep(BETWEEN_ROUNDS)


async def test_a_client_whose_clock_is_not_known_waits_for_the_largest_distance(tmp_path: Path) -> None:
    """D67: it may have used an assertion that is dated 30 s ahead; Retry-After says how long that is."""
    with RedisServer() as server, postgresql() as database:
        time.sleep(2)
        with running(tmp_path, database, server.url, count=2) as nodes:
            async with signed_in(nodes) as person:
                await accepted(person, person.party(0), 0)
                await older(database, "DELETE FROM client_clocks")
                await asyncio.to_thread(lose, server, "empty")
                lost_at = time.monotonic()
                await within(KNOWN_SECONDS, lambda: recovering(person))
                await asyncio.sleep(KNOWN_SECONDS / 2)  # then a nonce is given, and nothing else is waited for
                answer = await sent(person, person.party(1), 1, person.party(1).assertion())
                assert answer.status_code == 503
                assert 20 < int(answer.headers["retry-after"]) <= UNKNOWN_SECONDS
                await accepted(person, person.party(1), 1, seconds=UNKNOWN_SECONDS)
                assert time.monotonic() - lost_at > 30


async def older(database: str, statement: str = "SELECT 1") -> None:
    """As if the records had been there for long."""
    connection = await asyncpg.connect(database)
    try:
        await connection.execute(statement)
        earlier = time.time() - 2 * KNOWN_AFTER_SECONDS
        await connection.execute("UPDATE client_clocks SET since = $1", earlier)
        await connection.execute("UPDATE deployment SET value = $1 WHERE name = 'client_clocks_since'", repr(earlier))
    finally:
        await connection.close()


async def sent(person: Person, rp: RelyingParty, number: int, assertion: str) -> httpx.Response:
    """A push with this assertion and a new proof, which asks for a nonce first if it has to."""
    at(person, rp, number)
    url = (await rp.discover())["pushed_authorization_request_endpoint"]

    async def push(**claims: Any) -> httpx.Response:
        proof = rp.proof("POST", url, iat=int(time.time()), **claims)
        return await rp.push({"client_assertion": assertion}, {"DPoP": proof})

    answer = await push()
    nonce = answer.headers.get("dpop-nonce")
    return await push(nonce=nonce) if answer.status_code == 400 and nonce else answer


async def accepted(person: Person, rp: RelyingParty, number: int, seconds: float = KNOWN_SECONDS) -> str:
    """The first assertion that is accepted, made again and again."""
    end = time.monotonic() + seconds
    while True:
        assertion = rp.assertion(key=KEYS.signing)
        answer = await sent(person, rp, number, assertion)
        if answer.status_code == 201:
            return assertion
        assert answer.status_code == 503, answer.text
        assert time.monotonic() < end, answer.text
        await asyncio.sleep(0.1)
