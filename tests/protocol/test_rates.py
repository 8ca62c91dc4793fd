"""How many requests one client, and one address, may send in a minute (D47)."""

from __future__ import annotations

import asyncio
import re
import shutil
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from corpid.flows.rate_limits import COUNTED, LimitCounts, RateLimit, RateLimits
from corpid.rules.oauth.errors import TooManyRequests
from corpid.settings import Settings
from corpid.stores import milliseconds
from corpid.stores.sql import sqlite
from tests.api.calling import Api
from tests.memory_store import MemoryTransientBatch, MemoryTransientStore
from tests.protocol.api_callers import registers
from tests.protocol.deployment import ISSUER, template
from tests.protocol.provider import World
from tests.protocol.test_unavailable import locked
from tests.scim.calling import provisioning
from tests.world.clock import NOON
from tests.world.provider import EVENT, copied
from tests.world.short_lived import DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    import httpx

ELSEWHERE = "192.0.2.9"


def told_to_wait(answer: httpx.Response) -> None:
    assert answer.status_code == 429
    assert 0 < int(answer.headers["retry-after"]) <= 60
    assert answer.json()["error"] == "temporarily_unavailable"
    assert "too many requests from one" in answer.json()["error_description"]


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
        seconds = int(answer.headers["retry-after"])
        assert seconds > 0
        assert re.search(rf"Wait {seconds} seconds?, then reload this page", answer.text)
        assert "under maintenance" not in answer.text
        assert world.get(url, world.new_browser(), x_forwarded_for="192.0.2.10").status_code == 303


def test_one_client_too_many_token_requests_is_429_and_the_others_go_on() -> None:
    """D47: whatever became of them; a code that was not looked at is still good a minute later."""
    with World(token_per_client=3) as world:
        code = world.code()
        for _ in range(3):
            assert world.redeem("c" + "A" * 43).status_code == 400
        with world.nothing_spent():
            told_to_wait(world.redeem(code))
        assert world.redeem("c" + "A" * 43, world.party("rp-2")).status_code == 400
        world.clock.now += 59
        assert world.redeem(code).status_code == 200


@pytest.mark.parametrize("page", ["account", "recover"])
def test_one_address_too_many_arrivals_without_a_client_is_a_page_that_says_to_wait(page: str) -> None:
    """D47: anybody can begin there, and it is kept for hours; whoever comes for a client goes on."""
    with World(account_per_address=4) as world:
        account = f"{world.issuer}/{page}"
        for _ in range(4):
            assert world.get(account, world.new_browser(), x_forwarded_for=ELSEWHERE).status_code != 429
        answer = world.get(account, world.new_browser(), x_forwarded_for=ELSEWHERE)
        assert answer.status_code == 429
        assert re.search(r"Wait \d+ seconds?, then reload this page", answer.text)
        assert world.get(account, world.new_browser(), x_forwarded_for="192.0.2.10").status_code != 429
        assert world.get(world.asked(), world.new_browser(), x_forwarded_for=ELSEWHERE).status_code == 303


LIMITS = [
    name
    for name in Settings.model_fields
    if name.endswith(("_per_client", "_per_address")) and not name.startswith(("api_", "scim_"))
]
"""those of the admin API and of SCIM are in tests/api/test_access.py and tests/scim/test_access.py"""


def test_every_limit_is_a_setting_that_counts_something_and_is_documented() -> None:
    """D47: what a setting limits is found by its name."""
    possible = {f"{counted}_{each.name}" for counted in COUNTED for each in fields(RateLimit)}
    named = {name for name in Settings.model_fields if re.search(r"_(per_(client|address|network)|in_all)$", name)}
    assert named <= possible
    assert all(any(name.startswith(f"{counted}_") for name in named) for counted in COUNTED)
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert [name for name in sorted(named) if f"`{name}`" not in page] == []


@pytest.mark.full
@pytest.mark.parametrize("limited", LIMITS)
def test_in_developer_mode_ones_own_machine_is_not_counted(limited: str) -> None:
    """Off for loopback in developer mode; every limit is a setting."""
    limits: dict[str, Any] = {limited: 2}
    for developer_mode in (True, False):
        with World(base_url="http://localhost:8080", developer_mode=developer_mode, **limits) as world:
            statuses = {status for _ in range(8) for status in one_of_each(world)}
        assert (429 in statuses) != developer_mode, statuses


def one_of_each(world: World) -> list[int]:
    """A push, a token request, an arrival, and one at the account, from this machine."""
    arrival = world.get(f"{world.issuer}/mga/sps/oauth/oauth20/authorize?client_id=nobody", world.new_browser())
    account = world.get(f"{world.issuer}/account", world.new_browser())
    sent = world.push(), world.redeem("c" + "A" * 43), arrival, account
    return [answer.status_code for answer in sent]


@pytest.mark.parametrize("counted", ["client", "address"])
def test_a_push_or_token_request_that_meets_a_store_that_is_away_counts_nowhere(
    monkeypatch: pytest.MonkeyPatch, counted: str
) -> None:
    """D47: neither against the client nor the address; what was asked is answered as soon as the store is back."""
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    limits: dict[str, Any] = {f"par_per_{counted}": 3, f"token_per_{counted}": 1}
    with World(one_database=True, developer_mode=False, **limits) as world:
        code = world.code()  # a push for the sign-in, and one for the code
        with locked(world):
            answers = [(world.push(), world.redeem(code)) for _ in range(6)]
        assert {each.status_code for pair in answers for each in pair} == {503}
        assert (world.push().status_code, world.redeem(code).status_code) == (201, 200)


@pytest.mark.parametrize("counted", ["client", "address"])
def test_an_assertion_that_waits_after_a_loss_counts_nowhere(tmp_path: Path, counted: str) -> None:
    """D47, D67: who repeats it too soon has not less of its share when the wait is over."""
    limits: dict[str, Any] = {f"par_per_{counted}": 2}
    directory = copied(template(), tmp_path)
    with World(at=directory, developer_mode=False) as before:
        assert before.push().status_code == 201
    shutil.rmtree(directory / DIRECTORY)
    with World(at=directory, developer_mode=False, **limits) as world:
        for _ in range(6):
            told_to_wait_for_data(world.push())
        world.clock.now += 60
        assert world.push().status_code == 201


def told_to_wait_for_data(answer: httpx.Response) -> None:
    assert (answer.status_code, answer.json()["error"]) == (503, "temporarily_unavailable")


@pytest.mark.full
@pytest.mark.parametrize("limited", ["api_per_client", "api_per_address", "scim_per_client", "scim_per_address"])
def test_under_maintenance_programs_use_up_nothing_of_their_share(limited: str) -> None:
    """D47, D59, D60."""
    limits: dict[str, Any] = {limited: 3}
    with World(developer_mode=False, **limits) as world:
        ask = api_of(world) if limited.startswith("api") else lambda: provisioning(world).get("/Users")
        world.run(world.provider.registry.deployment.set_maintenance(True, EVENT))
        world.provider.registry_cache.drop()
        assert {ask().status_code for _ in range(8)} == {503}
        world.run(world.provider.registry.deployment.set_maintenance(False, EVENT))
        world.provider.registry_cache.drop()
        assert ask().status_code == 200


def api_of(world: World) -> Callable[[], httpx.Response]:
    api = Api(caller=registers(world), world=world)
    api.token = api.caller.access_token(scope=" ".join(api.scopes))
    return lambda: api.get("/clients")


def test_a_sign_in_that_meets_maintenance_uses_up_nothing_of_its_address() -> None:
    """D47: the page and the callback say so, and the next one begins."""
    with World(sign_in_per_address=2, session_seconds=0) as world:
        urls = [world.asked() for _ in range(7)]
        world.run(world.provider.registry.deployment.set_maintenance(True, EVENT))
        world.provider.registry_cache.drop()
        for url in urls[:6]:
            answer = world.get(url, world.new_browser(), x_forwarded_for=ELSEWHERE)
            assert "error=temporarily_unavailable" in answer.headers["location"]
        world.run(world.provider.registry.deployment.set_maintenance(False, EVENT))
        world.provider.registry_cache.drop()
        assert world.get(urls[6], world.new_browser(), x_forwarded_for=ELSEWHERE).status_code == 303


async def test_what_is_taken_back_leaves_the_count_as_it_was_also_in_the_store() -> None:
    """D47: whether or not the request was one with which a part was added to the store."""
    transient, limit = MemoryTransientStore(), RateLimit(per_client=40)
    rates = RateLimits(transient, ISSUER, {"par": limit}, spare_loopback=False)
    for _ in range(100):
        counts = LimitCounts()
        await rates.client("par", "rp-1", ELSEWHERE, NOON, counts)
        await counts.take_back(transient, now=NOON)
    assert {entry.count for entry in transient.entries.values()} <= {0}
    for _ in range(40):
        await rates.client("par", "rp-1", ELSEWHERE, NOON)
    with pytest.raises(TooManyRequests):
        await rates.client("par", "rp-1", ELSEWHERE, NOON)


@pytest.mark.parametrize(("limit", "processes"), [(40, 1), (40, 4), (100, 3), (5, 2)])
async def test_processes_together_pass_a_limit_by_at_most_a_part_of_it_each(limit: int, processes: int) -> None:
    """A twentieth part, and one; none is refused before its time."""
    transient = MemoryTransientStore()
    every = [
        RateLimits(transient, ISSUER, {"par": RateLimit(per_client=limit)}, spare_loopback=False)
        for _ in range(processes)
    ]

    part = max(1, limit // 20)
    let_through = 0
    for number in range(3 * limit):
        try:
            await every[number % processes].client("par", "rp-1", ELSEWHERE, NOON)
        except TooManyRequests:
            continue
        let_through += 1
    assert limit <= let_through <= limit + processes * part


class SlowUnit(MemoryTransientBatch):
    """Counts at once, and tells it only when the gate opens."""

    gate: asyncio.Event

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, trace)
        await self.gate.wait()


class SlowTransientStore(MemoryTransientStore):
    def batch(self, now: float) -> MemoryTransientBatch:
        return SlowUnit(self, milliseconds(now))


async def test_what_the_store_says_of_the_last_minute_does_not_hold_in_the_next() -> None:
    """D47: a limit is one of a minute."""
    transient = SlowTransientStore()
    SlowUnit.gate = asyncio.Event()
    SlowUnit.gate.set()
    near, far = (
        RateLimits(transient, ISSUER, {"par": RateLimit(per_client=20)}, spare_loopback=False) for _ in range(2)
    )
    end = NOON - NOON % 60 + 59.9
    for _ in range(20):
        await far.client("par", "rp-1", ELSEWHERE, end)
    SlowUnit.gate.clear()
    last = asyncio.create_task(near.client("par", "rp-1", ELSEWHERE, end))
    await asyncio.sleep(0)
    SlowUnit.gate.set()
    await near.client("par", "rp-2", ELSEWHERE, end + 0.2)
    with pytest.raises(TooManyRequests):
        await last
    await near.client("par", "rp-1", ELSEWHERE, end + 0.3)


async def test_requests_that_took_long_do_not_empty_what_was_counted_since() -> None:
    """D47: a request's time is that of its beginning; its key may have been fetched for seconds."""
    rates = RateLimits(MemoryTransientStore(), ISSUER, {"token": RateLimit(per_client=100)}, spare_loopback=False)
    begun = NOON - NOON % 60

    let_through = 0
    for number in range(1000):
        late = number % 4 == 3
        try:
            await rates.client("token", f"slow-{number}" if late else "rp-1", ELSEWHERE, begun - late)
        except TooManyRequests:
            continue
        let_through += not late
    assert let_through == 100


async def test_a_clock_that_is_set_back_begins_anew() -> None:
    """Else whoever was refused at the wrong time stays refused until it comes again."""
    rates = RateLimits(MemoryTransientStore(), ISSUER, {"token": RateLimit(per_client=2)}, spare_loopback=False)

    for now in (NOON + 3600, NOON):
        for _ in range(2):
            await rates.client("token", "rp-1", ELSEWHERE, now)
        with pytest.raises(TooManyRequests):
            await rates.client("token", "rp-1", ELSEWHERE, now)


@pytest.mark.full
async def test_a_caller_with_many_addresses_does_not_empty_what_clients_have_used() -> None:
    """D47: 20,000 counters of addresses are held, and forgotten without those of clients."""
    limits = {"token": RateLimit(per_client=100, per_address=100)}
    rates = RateLimits(MemoryTransientStore(), ISSUER, limits, spare_loopback=False)

    for _ in range(99):
        await rates.client("token", "rp-1", ELSEWHERE, NOON)
    for number in range(20_001):
        await rates.address("token", f"2001:db8:{number >> 8:x}:{number & 255:x}::1", NOON)
    let_through = 0
    for _ in range(3):
        with suppress(TooManyRequests):
            await rates.client("token", "rp-1", ELSEWHERE, NOON)
            let_through += 1
    assert let_through == 1
