"""How many requests one client, and one address, may send in a minute (D47)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from corpid.adapters.memory import MemoryTransientStore
from corpid.flows.rates import Rate, Rates
from corpid.protocol.errors import TooManyRequests
from tests.protocol.deployment import ISSUER, NOON
from tests.protocol.provider import World

if TYPE_CHECKING:
    import httpx

ELSEWHERE = "192.0.2.9"


def told_to_wait(answer: httpx.Response) -> None:
    assert answer.status_code == 429
    assert 0 < int(answer.headers["retry-after"]) <= 60
    assert answer.json()["error"] == "temporarily_unavailable"
    assert "too many requests by one" in answer.json()["error_description"]


def test_one_client_too_many_pushes_is_429_and_the_others_go_on() -> None:
    """D32, D47: JSON with error, and Retry-After."""
    with World(par_per_client=10) as world:
        assert [world.push().status_code for _ in range(10)] == [201] * 10
        with world.nothing_spent():
            told_to_wait(world.push())
        assert world.push(world.party("rp-2")).status_code == 201
        world.clock.now += 60
        assert world.push().status_code == 201


def test_whoever_cannot_prove_to_be_a_client_uses_up_nothing_of_its_share() -> None:
    """D47: counted after authentication."""
    with World(par_per_client=5) as world:
        for _ in range(20):
            assert world.push(client_assertion="x.y.z").status_code == 401
        assert world.push().status_code == 201


@pytest.mark.parametrize("limited", ["par_per_address", "token_per_address"])
def test_one_address_too_many_requests_is_429_whoever_it_says_it_is(limited: str) -> None:
    """D47: before any signature is looked at; another address is not concerned."""
    limits: dict[str, Any] = {limited: 6}
    with World(**limits) as world:

        def send(address: str) -> httpx.Response:
            headers = {"X-Forwarded-For": address}
            if limited == "par_per_address":
                return world.push(headers=headers, client_assertion="x.y.z")
            return world.redeem("c" + "A" * 43, headers=headers)

        for _ in range(6):
            assert send(ELSEWHERE).status_code in (400, 401)
        told_to_wait(send(ELSEWHERE))
        assert send("192.0.2.10").status_code in (400, 401)


@pytest.mark.parametrize("generation", ["current", "legacy"])
def test_one_address_too_many_arrivals_is_a_page_that_says_to_wait(generation: str) -> None:
    """D47: nobody has proven anything who arrives with a query."""
    with World(generations=(generation,), sign_in_per_address=4, session_seconds=0) as world:
        for _ in range(4):
            url = world.asked()
            assert world.get(url, world.new_browser(), x_forwarded_for=ELSEWHERE).status_code == 303
        answer = world.get(url, world.new_browser(), x_forwarded_for=ELSEWHERE)
        assert (answer.status_code, answer.headers["content-type"]) == (429, "text/html; charset=utf-8")
        assert int(answer.headers["retry-after"]) > 0
        assert world.get(url, world.new_browser(), x_forwarded_for="192.0.2.10").status_code == 303


def test_in_developer_mode_ones_own_machine_is_not_counted() -> None:
    """Issue: off for loopback in developer mode."""
    with World(base_url="http://localhost:8080", developer_mode=True, par_per_address=2, par_per_client=2) as world:
        assert {world.push().status_code for _ in range(8)} == {201}


@pytest.mark.parametrize(("limit", "processes"), [(40, 1), (40, 4), (100, 3), (5, 2)])
def test_processes_together_pass_a_limit_by_at_most_a_part_of_it_each(limit: int, processes: int) -> None:
    """A twentieth part, and one; none is refused before its time."""
    transient = MemoryTransientStore()
    every = [Rates(transient, ISSUER, {"par": Rate(per_client=limit)}, spare_loopback=False) for _ in range(processes)]

    async def story() -> int:
        let_through = 0
        for number in range(3 * limit):
            try:
                await every[number % processes].client("par", "rp-1", ELSEWHERE, NOON)
            except TooManyRequests:
                continue
            let_through += 1
        return let_through

    part = max(1, limit // 20)
    assert limit <= asyncio.run(story()) <= limit + processes * part
