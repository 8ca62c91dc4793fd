"""Two nodes whose engine lost its data: who can prove that a proof is new goes on at once, and nothing is spent twice (D67)."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from corpid.rules.authentication.totp import STEP_SECONDS
from corpid_dev.relying_party import people
from tests.engines import RedisServer, postgresql
from tests.many.nodes import Person, running, signed_in, within
from tests.web.processes import RINA

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from corpid_dev.relying_party.relying_party import RelyingParty

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

AHEAD = 29
"""seconds by which the clock of this relying party is ahead, so that its assertions are certainly younger than the loss"""
LONG = 30
OVER_SECONDS = 60


@pytest.mark.parametrize(("program", "how"), [("redis", "restart"), ("valkey", "empty")])
async def test_a_proof_with_a_nonce_goes_through_before_the_wait_is_over_and_only_once(
    tmp_path: Path, program: str, how: str
) -> None:
    """RFC 9449 §8: the nonce of one node is good at the other; the proof is spent at both; a token issued meanwhile is good."""

    async def story(person: Person) -> None:
        await asyncio.sleep(STEP_SECONDS - time.time() % STEP_SECONDS)  # the next code of Rina's app
        before = await spent(person)
        await asyncio.to_thread(lose, server, how)
        await within(LONG, lambda: recovering(person))
        for number in (0, 1):
            await within(LONG, lambda number=number: demands_a_nonce(person, number))
            assert (await again(person, number, before)).isdisjoint({200, 201})
        rp = person.party(0)
        rp.clock = lambda: time.time() + AHEAD
        form, headers, pushed = await accepted(rp)
        for number in (0, 1, 0):
            assert (await again(person, number, (rp, form, headers))).isdisjoint({200, 201})
        rp.http = person.https[0]
        await tokens(person, rp, pushed.json()["request_uri"])
        assert await recovering(person), "all this was before the wait was over"
        await within(OVER_SECONDS, lambda: over(person))
        for number in (0, 1):
            assert (await again(person, number, before)).isdisjoint({200, 201})
            assert (await person.party(number).push()).status_code == 201

    with RedisServer(program=program) as server, postgresql() as database:
        time.sleep(2)  # an engine that is no older than the deployment might have forgotten something of it
        with running(tmp_path, database, server.url, count=2) as nodes:
            async with signed_in(nodes) as person:
                await story(person)
    for number in (0, 1):
        events = [line["event"] for line in nodes.log(number)]
        assert [events.count(event) for event in ("data_lost", "data_lost_over")] == [1, 1]


def now() -> int:
    return int(time.time())


def lose(server: RedisServer, how: str) -> None:
    if how == "empty":
        assert server.command("FLUSHALL") == "+OK"
    else:
        server.stop()
        server.start()


async def spent(person: Person) -> tuple[RelyingParty, dict[str, Any], dict[str, Any]]:
    """A pushed request, which is sent again later."""
    rp = person.party(0)
    url = (await rp.discover())["pushed_authorization_request_endpoint"]
    form, headers = {"client_assertion": rp.assertion()}, {"DPoP": rp.proof("POST", url)}
    assert (await rp.push(form, headers)).status_code == 201
    return rp, form, headers


async def again(person: Person, number: int, before: tuple[RelyingParty, dict[str, Any], dict[str, Any]]) -> set[int]:
    """The status of each spent thing, together and with a new counterpart."""
    rp, form, headers = before
    rp = at(person, rp, number)
    answers = [await rp.push(form, headers), await rp.push(form), await rp.push(headers=headers)]
    return {answer.status_code for answer in answers}


def at(person: Person, rp: RelyingParty, number: int) -> RelyingParty:
    rp.http = person.https[number]
    return rp


async def accepted(rp: RelyingParty) -> tuple[dict[str, Any], dict[str, Any], httpx.Response]:
    """A request that is pushed with a nonce, as soon as its assertion is certainly younger than the loss."""
    url = (await rp.discover())["pushed_authorization_request_endpoint"]
    nonce, end = "", time.monotonic() + LONG
    while True:
        form, headers = {"client_assertion": rp.assertion()}, {"DPoP": rp.proof("POST", url, nonce=nonce, iat=now())}
        answer = await rp.push(form, headers)
        if answer.status_code == 201:
            return form, headers, answer
        assert answer.status_code in {400, 503}, answer.text
        assert time.monotonic() < end, answer.text
        nonce = answer.headers.get("dpop-nonce", nonce)
        await asyncio.sleep(0.2)


async def tokens(person: Person, rp: RelyingParty, request_uri: str) -> None:
    """Sign in again, redeem the code at the first node, and read userinfo at the second, with nonces."""
    rp.sign_in.request_uri = request_uri
    for browser in person.browsers:
        browser.cookies.clear()
    callback = await people.sign_in(person.browser(0), rp.authorization_url(), replace(RINA), "A1")
    code, url = rp.callback(callback), rp.metadata["token_endpoint"]
    nonce = (await rp.token(code, headers={"DPoP": rp.proof("POST", url, iat=now())})).headers["dpop-nonce"]
    answer = await rp.token(code, headers={"DPoP": rp.proof("POST", url, nonce=nonce, iat=now())})
    assert answer.status_code == 200, answer.text
    token, url = answer.json()["access_token"], rp.metadata["userinfo_endpoint"]
    rp.http = person.https[1]
    proof = rp.proof("GET", url, token, nonce=nonce, iat=now())
    answer = await rp.resource("GET", {"DPoP": proof}, access_token=token)
    assert answer.status_code == 200, answer.text


async def recovering(person: Person) -> bool:
    """Both nodes are ready, and say that they recover."""
    for number in (0, 1):
        answer = await person.https[number].get(f"{person.nodes.at(number)}/readyz")
        if answer.status_code != 200 or answer.json().get("recovering") != "short-lived state":
            return False
    return True


async def over(person: Person) -> bool:
    answers = [await person.https[number].get(f"{person.nodes.at(number)}/readyz") for number in (0, 1)]
    await asyncio.sleep(1)
    return all(answer.json() == {"status": "ready"} for answer in answers)


async def demands_a_nonce(person: Person, number: int) -> bool:
    rp = person.party(number)
    rp.clock = lambda: time.time() + AHEAD
    url = (await rp.discover())["pushed_authorization_request_endpoint"]
    answer = await rp.push({"client_assertion": rp.assertion()}, {"DPoP": rp.proof("POST", url, iat=now())})
    if answer.status_code == 503:
        assert 0 < int(answer.headers["retry-after"]) < 20
        return False
    assert (answer.status_code, answer.json()["error"]) == (400, "use_dpop_nonce"), answer.text
    return True
