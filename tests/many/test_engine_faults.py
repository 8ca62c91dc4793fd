"""An engine goes away under load and comes back: meanwhile a clear answer, afterwards everything by itself."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.engines import PostgresServer, RedisServer
from tests.faults.attempts import Attempt, Failed, attempt, nothing_twice, refused, told_to_retry
from tests.many.nodes import Nodes, Person, running, sign_in, signed_in, within, within_five_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


pytestmark = [pytest.mark.full, pytest.mark.timeout(400)]

FORGOTTEN_SECONDS = 90
"""after an engine has forgotten, what may have been issued before is refused for a while"""
LIVE = 5
LONG = 60
NODES = 2
FLOWS = 8
NEVER_PUSHED = "urn:ietf:params:oauth:request_uri:" + "A" * 43
FORGOTTEN = {"use_dpop_nonce", "invalid_grant"}
"""what a request is told whose proof, assertion or code may have been used before"""
DATABASE, SHORT_LIVED = "database", "short-lived state"
"""the parts that /readyz names"""
PARTS = {"postgresql": DATABASE, "redis": SHORT_LIVED, "valkey": SHORT_LIVED}


@pytest.fixture
def engines(engine: str) -> Iterator[dict[str, Any]]:
    """Engines of the test's own, which it may stop; Valkey in the place of Redis where that is the one."""
    program = engine if PARTS[engine] == SHORT_LIVED else "redis"
    with PostgresServer() as postgresql, RedisServer(program=program) as transient:
        # An engine that is no older than the deployment might have forgotten something of it.
        time.sleep(2)
        yield {DATABASE: postgresql, SHORT_LIVED: transient}


@pytest.mark.parametrize(
    ("engine", "how"),
    # A PostgreSQL that hangs is a matter of each of its processes: tests/adapters has it.
    [
        *((engine, how) for engine in ("redis", "valkey") for how in ("stop", "crash", "pause")),
        ("postgresql", "stop"),
        ("postgresql", "crash"),
    ],
)
async def test_while_an_engine_is_away_everybody_is_told_to_retry_and_then_it_goes_on(
    tmp_path: Path, engines: dict[str, Any], engine: str, how: str
) -> None:
    """503 temporarily_unavailable with Retry-After; /readyz says which part; no restart, and no code twice."""
    server = engines[PARTS[engine]]

    attempts: list[Attempt] = []
    failures: list[httpx.Response] = []

    async def story(person: Person) -> None:
        done, nodes = asyncio.Event(), person.nodes
        load = [asyncio.create_task(_flows(person, number, attempts, failures, done)) for number in range(NODES)]
        await within(LONG, lambda: _tokens(attempts, FLOWS))
        await asyncio.to_thread(getattr(server, how))
        for number in range(NODES):
            await within_five_seconds(lambda number=number: _says(nodes, number, 503, PARTS[engine]))
        await within(2 * LIVE, lambda: _every_form(person))
        await asyncio.to_thread(server.resume if how == "pause" else server.start)
        for number in range(NODES):
            await within(LONG, lambda number=number: _says(nodes, number, 200, None))
        for number in range(NODES):
            await within(FORGOTTEN_SECONDS, lambda number=number: _accepted(person, number))
        done.set()
        await asyncio.gather(*load)
        forgetful = PARTS[engine] == SHORT_LIVED and how != "pause"
        for answer in failures:
            _told_why(answer, forgetful=forgetful)
        if forgetful:
            await sign_in(person)
        await _goes_on(person, [] if forgetful else attempts)
        for one in attempts:
            await _nothing_again(person, one)

    database = engines[DATABASE].dsn()
    with running(tmp_path, database, engines[SHORT_LIVED].url, count=NODES) as nodes:
        async with signed_in(nodes) as person:
            await story(person)
    assert failures


async def _says(nodes: Nodes, number: int, status: int, part: str | None) -> bool:
    async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
        answer = await http.get(f"{nodes.at(number)}/readyz")
    return answer.status_code == status and answer.json().get("part") == part


async def _flows(
    person: Person, at: int, attempts: list[Attempt], failures: list[httpx.Response], done: asyncio.Event
) -> None:
    while not done.is_set():
        try:
            await attempt(person.party(at), person.browsers[at], attempts)
        except Failed as failure:
            failures.append(failure.answer)
            await asyncio.sleep(0.1)


async def _tokens(attempts: list[Attempt], count: int) -> bool:
    return sum(bool(one.token) for one in attempts) >= count


async def _goes_on(person: Person, known: list[Attempt]) -> None:
    """Flows as before, and nothing of them or of those that the engines still know is worth anything twice."""
    later: list[Attempt] = []
    for number in range(FLOWS):
        await attempt(person.party(number % NODES), person.browsers[number % NODES], later)
    for one in [*later, *known]:
        await nothing_twice(person.https[0], person.browsers[0], one, whole=False)


async def _every_form(person: Person) -> bool:
    """Told to retry in JSON, in the callback where the relying party is known, and on a page where it is not. What a
    process remembers of clients lasts five seconds."""
    rp, browsing = person.party(0), person.browsers[0]
    pushed = await rp.push()
    if pushed.status_code == 201:
        return False
    told_to_retry(pushed)
    rp.sign_in.request_uri = NEVER_PUSHED
    arrived = await browsing.get(rp.authorization_url(), follow_redirects=False)
    if arrived.status_code == 400:
        return False  # this client is still remembered
    told_to_retry(arrived)
    assert arrived.status_code == 302 or arrived.headers["content-type"].startswith("text/html")
    told_to_retry(await rp.token("c" + "A" * 43))
    return True


def _told_why(answer: httpx.Response, *, forgetful: bool) -> None:
    """An engine that has forgotten makes the rest of what it held worthless, too; then a request is refused, or a
    browser, which nobody knows any more, is asked to sign in."""
    if not forgetful or answer.status_code == 503:
        told_to_retry(answer)
    elif answer.headers.get("content-type") == "application/json":
        assert answer.json()["error"] in FORGOTTEN, answer.text
    else:
        assert answer.status_code in {302, 303, 400}, answer.text


async def _nothing_again(person: Person, one: Attempt) -> None:
    """Whatever became of it, what was spent is spent: sent again it gets no request, no code and no token."""
    one.rp.http = person.https[1]
    proof = await one.rp.push({"client_assertion": one.rp.assertion()}, one.push[1])
    assertion = await one.rp.push(one.push[0])
    if one.pushed:
        assert proof.json()["error"] in {"invalid_dpop_proof", "use_dpop_nonce"}, proof.text
        assert assertion.json()["error"] in {"invalid_client", "temporarily_unavailable"}, assertion.text
    if not one.code:
        return
    answer = await person.browsers[1].get(one.url, follow_redirects=False)
    assert "code=" not in answer.headers.get("location", "")
    if one.token:
        exchanged = await one.rp.token(one.code, *one.exchange)
        # On a slow machine its assertion has expired, too.
        spent = {"invalid_client", "invalid_dpop_proof", "use_dpop_nonce", "temporarily_unavailable"}
        assert exchanged.json()["error"] in spent, exchanged.text
        refused(await one.rp.token(one.code), 400, "invalid_grant")
        refused(await one.rp.resource(access_token=one.token), 401, "invalid_token")


async def _accepted(person: Person, number: int) -> bool:
    return (await person.party(number).push()).status_code == 201
