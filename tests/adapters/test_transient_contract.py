"""What every short-lived store promises (DESIGN "One-time means one statement", D49)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from corpid.protocol.errors import InvalidGrant, OAuthError
from tests.adapters.opened import NOW, TRANSIENT_STORES, memory_transient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from corpid.ports import TransientStore

KEY, OTHER = b"k" * 32, b"o" * 32
RACERS = 64


@pytest.fixture(params=TRANSIENT_STORES)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Callable[[Any], Awaitable[object]]], None]:
    """Runs a scenario on a fresh store of each sort."""

    def runner(scenario: Callable[[Any], Awaitable[object]]) -> None:
        async def opened() -> None:
            async with TRANSIENT_STORES[request.param](tmp_path) as store:
                await scenario(store)

        asyncio.run(opened())

    return runner


async def put(store: TransientStore, value: bytes, *, ttl: float = 60, now: float = NOW, kind: str = "code") -> None:
    async with store.unit(now) as unit:
        await unit.put(kind, KEY, value, ttl)


async def take(store: TransientStore, *, now: float = NOW) -> bytes | None:
    async with store.unit(now) as unit:
        return await unit.take("code", KEY)


async def add(store: TransientStore, *, now: float = NOW, ttl: float = 60, key: bytes = KEY) -> bool:
    async with store.unit(now) as unit:
        return await unit.add("jti", key, ttl)


async def count(store: TransientStore, *, now: float = NOW, ttl: float = 60) -> int:
    async with store.unit(now) as unit:
        return await unit.count("misses", KEY, ttl)


def test_of_64_takes_exactly_one_gets_the_value(run: Any) -> None:
    """D18: a code is spent by one atomic take."""

    async def scenario(store: TransientStore) -> None:
        await put(store, b"grant")
        taken = await asyncio.gather(*(take(store) for _ in range(RACERS)))
        assert (taken.count(b"grant"), taken.count(None)) == (1, RACERS - 1)

    run(scenario)


def test_of_64_adds_exactly_one_is_the_first(run: Any) -> None:
    """D7, D8: a jti is used once."""

    async def scenario(store: TransientStore) -> None:
        firsts = await asyncio.gather(*(add(store) for _ in range(RACERS)))
        assert firsts.count(True) == 1

    run(scenario)


def test_64_counts_give_64_different_numbers(run: Any) -> None:
    """D47: no attempt goes uncounted."""

    async def scenario(store: TransientStore) -> None:
        numbers = await asyncio.gather(*(count(store) for _ in range(RACERS)))
        assert sorted(numbers) == list(range(1, RACERS + 1))

    run(scenario)


def test_a_value_is_live_before_its_expiry_and_gone_at_it(run: Any) -> None:
    """Spec 8, D49: codes and pushed requests end exactly."""

    async def scenario(store: TransientStore) -> None:
        await put(store, b"grant", ttl=60)
        assert await store.get("code", KEY, now=NOW + 59.999) == b"grant"
        assert await store.get("code", KEY, now=NOW + 60) is None
        assert await take(store, now=NOW + 60) is None
        assert await take(store, now=NOW + 59.999) == b"grant"

    run(scenario)


def test_add_is_first_again_at_expiry_and_not_before(run: Any) -> None:
    """D49: the record of what was spent ends when it says."""

    async def scenario(store: TransientStore) -> None:
        assert await add(store, ttl=120)
        assert not await add(store, ttl=120, now=NOW + 119.999)
        assert await add(store, ttl=120, now=NOW + 120)
        assert not await add(store, ttl=120, now=NOW + 121)

    run(scenario)


def test_a_refused_add_lengthens_nothing_and_changes_no_value(run: Any) -> None:
    async def scenario(store: TransientStore) -> None:
        async with store.unit(NOW) as unit:
            assert await unit.add("claim", KEY, 60, b"first")
            assert not await unit.add("claim", KEY, 600, b"second")
        assert await store.get("claim", KEY, now=NOW + 59) == b"first"
        assert await store.get("claim", KEY, now=NOW + 60) is None

    run(scenario)


def test_a_counter_lives_from_its_first_raise_only(run: Any) -> None:
    """D47: later attempts do not lengthen the count, which starts anew when its life is over."""

    async def scenario(store: TransientStore) -> None:
        assert await count(store, ttl=60) == 1
        assert await count(store, ttl=60, now=NOW + 59) == 2
        assert await store.get("misses", KEY, now=NOW + 59) == b"2"
        assert await count(store, ttl=60, now=NOW + 60) == 1
        assert await count(store, ttl=60, now=NOW + 119) == 2

    run(scenario)


def test_put_writes_over_value_and_lifetime(run: Any) -> None:
    async def scenario(store: TransientStore) -> None:
        await put(store, b"old", ttl=600)
        await put(store, b"new", ttl=10)
        assert await store.get("code", KEY, now=NOW) == b"new"
        assert await store.get("code", KEY, now=NOW + 10) is None

    run(scenario)


def test_kinds_and_keys_are_separate(run: Any) -> None:
    """DESIGN: kinds are separate namespaces; what is spent in one is not in another."""

    async def scenario(store: TransientStore) -> None:
        await put(store, b"code", kind="code")
        await put(store, b"pushed", kind="pushed_request")
        assert await take(store) == b"code"
        assert await store.get("pushed_request", KEY, now=NOW) == b"pushed"
        assert await add(store)
        assert await add(store, key=OTHER)

    run(scenario)


def test_any_bytes_come_back_as_they_went_in(run: Any) -> None:
    async def scenario(store: TransientStore) -> None:
        for value in (b"", b"\x00\xff", b"7", bytes(range(256)) * 40):
            await put(store, value)
            assert await store.get("code", KEY, now=NOW) == value

    run(scenario)


def test_what_was_spent_stays_spent_when_the_flow_refuses(run: Any) -> None:
    """Order of a request: an error after spending commits, never rolls back."""

    async def scenario(store: TransientStore) -> None:
        await put(store, b"grant")
        with pytest.raises(InvalidGrant):
            await refuse(store)
        assert not await add(store)
        assert await take(store) is None

    async def refuse(store: TransientStore) -> None:
        async with store.unit(NOW) as unit:
            assert await unit.add("jti", KEY, 60)
            assert await unit.take("code", KEY) == b"grant"
            raise InvalidGrant("The code was issued for another redirect_uri.")

    run(scenario)


@pytest.mark.parametrize("failure", [RuntimeError("a fault"), asyncio.CancelledError()], ids=["fault", "cancelled"])
def test_anything_else_undoes_the_whole_unit(run: Any, failure: BaseException) -> None:
    """A request that broke spent nothing: its client may send it again."""

    async def scenario(store: TransientStore) -> None:
        await put(store, b"grant")
        with pytest.raises(type(failure)):
            await fail(store)
        assert await take(store) == b"grant"
        assert await add(store)
        assert await count(store) == 1

    async def fail(store: TransientStore) -> None:
        async with store.unit(NOW) as unit:
            await unit.take("code", KEY)
            await unit.put("code", KEY, b"another", 60)
            await unit.add("jti", KEY, 60)
            await unit.count("misses", KEY, 60)
            raise failure

    run(scenario)


def test_a_unit_inside_a_unit_of_the_same_task_shares_its_end(run: Any) -> None:
    async def scenario(store: TransientStore) -> None:
        with pytest.raises(RuntimeError, match="a fault"):
            await fail(store)
        assert await add(store)

    async def fail(store: TransientStore) -> None:
        async with store.unit(NOW):
            assert await add(store)
            raise RuntimeError("a fault")

    run(scenario)


def test_another_task_sees_a_unit_only_when_it_has_ended(run: Any) -> None:
    async def scenario(store: TransientStore) -> None:
        inside, leave = asyncio.Event(), asyncio.Event()

        async def slow() -> None:
            async with store.unit(NOW) as unit:
                await unit.put("code", KEY, b"grant", 60)
                inside.set()
                await leave.wait()
                raise InvalidGrant("Refused.")

        spending = asyncio.create_task(slow())
        await inside.wait()
        looks = asyncio.gather(store.get("code", KEY, now=NOW), take(store))
        await asyncio.sleep(0)
        assert not looks.done()
        leave.set()
        with pytest.raises(OAuthError):
            await spending
        looked, taken = await looks
        assert taken == b"grant"
        assert looked in {b"grant", None}

    run(scenario)


def test_a_look_outside_a_unit_spends_nothing(run: Any) -> None:
    async def scenario(store: TransientStore) -> None:
        await put(store, b"grant")
        assert [await store.get("code", KEY, now=NOW) for _ in range(2)] == [b"grant"] * 2
        assert await store.get("code", OTHER, now=NOW) is None

    run(scenario)


def test_sweeps_find_everything_that_expired_and_nothing_live(run: Any) -> None:
    async def scenario(store: TransientStore) -> None:
        async with store.unit(NOW) as unit:
            for number in range(1200):
                await unit.put(f"kind{number % 3}", number.to_bytes(32, "big"), b"", 10)
            await unit.put("code", KEY, b"live", 10.001)
        assert sum([await store.sweep(now=NOW + 9.999) for _ in range(9)]) == 0
        assert sum([await store.sweep(now=NOW + 10) for _ in range(9)]) == 1200
        assert await store.get("code", KEY, now=NOW + 10) == b"live"

    run(scenario)


def test_the_memory_store_keeps_nothing_of_a_unit_it_undid(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with memory_transient(tmp_path) as store:
            with pytest.raises(RuntimeError, match="a fault"):
                await fail(store)
            assert await store.sweep(now=NOW + 3600) == 0

    async def fail(store: TransientStore) -> None:
        async with store.unit(NOW) as unit:
            await unit.put("code", KEY, b"grant", 60)
            raise RuntimeError("a fault")

    asyncio.run(scenario())
