"""What every short-lived store promises (DESIGN "One-time means one statement", D49)."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from corpid.adapters.valkey import open_valkey
from corpid.protocol.errors import InvalidGrant, OAuthError
from tests import engines
from tests.adapters.opened import NOW, memory_transient, postgresql_transient, race, sqlite_transient
from tests.adapters.places import Place

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from corpid.ports import TransientStore

    Scenario = Callable[[Any], Awaitable[object]]
    Run = Callable[[Scenario], None]

KEY, OTHER = b"k" * 32, b"o" * 32
RACERS: Final = 64
PROCESSES: Final = 8
ROUNDS: Final = 25
SHORT: Final = 0.1
"""a lifetime by the engine's clock; a test that waits for its end waits twice as long"""


@asynccontextmanager
async def redis_transient(path: Path) -> AsyncIterator[TransientStore]:
    with engines.redis() as url:
        async with opened("redis", url) as store:
            yield store


STORES: Final[dict[str, Callable[[Path], AbstractAsyncContextManager[TransientStore]]]] = {
    "memory": memory_transient,
    "sqlite": sqlite_transient,
    "postgresql": postgresql_transient,
    "redis": redis_transient,
}
WITHOUT_CLOCK: Final = ("memory", "sqlite")
WITH_CLOCK: Final = ("postgresql", "redis")
WITH_TRANSACTIONS: Final = ("memory", "sqlite", "postgresql")


def runner(store: str, path: Path) -> Run:
    """Runs a scenario on a fresh store."""

    def run(scenario: Scenario) -> None:
        async def opened() -> None:
            async with STORES[store](path) as fresh:
                await scenario(fresh)

        asyncio.run(opened())

    return run


@pytest.fixture(params=STORES)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Each sort of store."""
    return runner(request.param, tmp_path)


@pytest.fixture(params=WITHOUT_CLOCK)
def run_at(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Stores in which `now` decides expiry."""
    return runner(request.param, tmp_path)


@pytest.fixture(params=WITH_CLOCK)
def run_by_its_clock(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Stores in which the engine's clock decides expiry."""
    return runner(request.param, tmp_path)


@pytest.fixture(params=WITH_TRANSACTIONS)
def run_undoing(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Stores whose units are transactions."""
    return runner(request.param, tmp_path)


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


def test_of_64_takes_exactly_one_gets_the_value(run: Run) -> None:
    """D18: a code is spent by one atomic take."""

    async def scenario(store: TransientStore) -> None:
        await put(store, b"grant")
        taken = await asyncio.gather(*(take(store) for _ in range(RACERS)))
        assert (taken.count(b"grant"), taken.count(None)) == (1, RACERS - 1)

    run(scenario)


def test_of_64_adds_exactly_one_is_the_first(run: Run) -> None:
    """D7, D8: a jti is used once."""

    async def scenario(store: TransientStore) -> None:
        firsts = await asyncio.gather(*(add(store) for _ in range(RACERS)))
        assert firsts.count(True) == 1

    run(scenario)


def test_64_counts_give_64_different_numbers(run: Run) -> None:
    """D47: no attempt goes uncounted."""

    async def scenario(store: TransientStore) -> None:
        numbers = await asyncio.gather(*(count(store) for _ in range(RACERS)))
        assert sorted(numbers) == list(range(1, RACERS + 1))

    run(scenario)


def test_a_value_is_live_before_its_expiry_and_gone_at_it(run_at: Run) -> None:
    """Spec 8, D49: codes and pushed requests end exactly."""

    async def scenario(store: TransientStore) -> None:
        await put(store, b"grant", ttl=60)
        assert await store.get("code", KEY, now=NOW + 59.999) == b"grant"
        assert await store.get("code", KEY, now=NOW + 60) is None
        assert await take(store, now=NOW + 60) is None
        assert await take(store, now=NOW + 59.999) == b"grant"

    run_at(scenario)


def test_add_is_first_again_at_expiry_and_not_before(run_at: Run) -> None:
    """D49: the record of what was spent ends when it says."""

    async def scenario(store: TransientStore) -> None:
        assert await add(store, ttl=120)
        assert not await add(store, ttl=120, now=NOW + 119.999)
        assert await add(store, ttl=120, now=NOW + 120)
        assert not await add(store, ttl=120, now=NOW + 121)

    run_at(scenario)


def test_a_refused_add_lengthens_nothing_and_changes_no_value(run_at: Run) -> None:
    async def scenario(store: TransientStore) -> None:
        async with store.unit(NOW) as unit:
            assert await unit.add("claim", KEY, 60, b"first")
            assert not await unit.add("claim", KEY, 600, b"second")
        assert await store.get("claim", KEY, now=NOW + 59) == b"first"
        assert await store.get("claim", KEY, now=NOW + 60) is None

    run_at(scenario)


def test_a_counter_lives_from_its_first_raise_only(run_at: Run) -> None:
    """D47: later attempts do not lengthen the count, which starts anew when its life is over."""

    async def scenario(store: TransientStore) -> None:
        assert await count(store, ttl=60) == 1
        assert await count(store, ttl=60, now=NOW + 59) == 2
        assert await store.get("misses", KEY, now=NOW + 59) == b"2"
        assert await count(store, ttl=60, now=NOW + 60) == 1
        assert await count(store, ttl=60, now=NOW + 119) == 2

    run_at(scenario)


def test_put_writes_over_value_and_lifetime(run_at: Run) -> None:
    async def scenario(store: TransientStore) -> None:
        await put(store, b"old", ttl=600)
        await put(store, b"new", ttl=10)
        assert await store.get("code", KEY, now=NOW) == b"new"
        assert await store.get("code", KEY, now=NOW + 10) is None

    run_at(scenario)


def test_kinds_and_keys_are_separate(run: Run) -> None:
    """DESIGN: kinds are separate namespaces; what is spent in one is not in another."""

    async def scenario(store: TransientStore) -> None:
        await put(store, b"code", kind="code")
        await put(store, b"pushed", kind="pushed_request")
        assert await take(store) == b"code"
        assert await store.get("pushed_request", KEY, now=NOW) == b"pushed"
        assert await add(store)
        assert await add(store, key=OTHER)

    run(scenario)


def test_any_bytes_come_back_as_they_went_in(run: Run) -> None:
    async def scenario(store: TransientStore) -> None:
        for value in (b"", b"\x00\xff", b"7", bytes(range(256)) * 40):
            await put(store, value)
            assert await store.get("code", KEY, now=NOW) == value

    run(scenario)


def test_what_was_spent_stays_spent_when_the_flow_refuses(run: Run) -> None:
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
def test_anything_else_undoes_the_whole_unit(run_undoing: Run, failure: BaseException) -> None:
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

    run_undoing(scenario)


def test_a_unit_inside_a_unit_of_the_same_task_shares_its_end(run_undoing: Run) -> None:
    async def scenario(store: TransientStore) -> None:
        with pytest.raises(RuntimeError, match="a fault"):
            await fail(store)
        assert await add(store)

    async def fail(store: TransientStore) -> None:
        async with store.unit(NOW):
            assert await add(store)
            raise RuntimeError("a fault")

    run_undoing(scenario)


def test_another_task_sees_a_unit_only_when_it_has_ended(run_undoing: Run) -> None:
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

    run_undoing(scenario)


def test_a_look_outside_a_unit_spends_nothing(run: Run) -> None:
    async def scenario(store: TransientStore) -> None:
        await put(store, b"grant")
        assert [await store.get("code", KEY, now=NOW) for _ in range(2)] == [b"grant"] * 2
        assert await store.get("code", OTHER, now=NOW) is None

    run(scenario)


def test_sweeps_find_everything_that_expired_and_nothing_live(run_at: Run) -> None:
    async def scenario(store: TransientStore) -> None:
        async with store.unit(NOW) as unit:
            for number in range(1200):
                await unit.put(f"kind{number % 3}", number.to_bytes(32, "big"), b"", 10)
            await unit.put("code", KEY, b"live", 10.001)
        assert sum([await store.sweep(now=NOW + 9.999) for _ in range(9)]) == 0
        assert sum([await store.sweep(now=NOW + 10) for _ in range(9)]) == 1200
        assert await store.get("code", KEY, now=NOW + 10) == b"live"

    run_at(scenario)


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


def test_the_engines_clock_decides_expiry_not_the_requests(run_by_its_clock: Run) -> None:
    """D49: nodes whose clocks differ agree about what has expired."""

    async def scenario(store: TransientStore) -> None:
        await put(store, b"grant", ttl=60)
        assert await store.get("code", KEY, now=NOW + 3600) == b"grant"
        assert not await first_then_again(store)
        assert await take(store, now=NOW + 3600) == b"grant"

    async def first_then_again(store: TransientStore) -> bool:
        assert await add(store)
        return await add(store, now=NOW + 3600)

    run_by_its_clock(scenario)


def test_by_the_engines_clock_everything_ends_too(run_by_its_clock: Run) -> None:
    """Spec 8, D47, D49: nothing outlives its time, and a later raise or a refused add lengthens nothing."""

    async def scenario(store: TransientStore) -> None:
        await put(store, b"grant", ttl=SHORT)
        await add(store, ttl=SHORT)
        await add(store, ttl=60)
        await count(store, ttl=SHORT)
        await count(store, ttl=60)
        await asyncio.sleep(2 * SHORT)
        assert await store.get("code", KEY, now=NOW) is None
        assert await take(store) is None
        assert await add(store)
        assert await count(store) == 1

    run_by_its_clock(scenario)


def test_by_the_engines_clock_put_writes_over_the_lifetime(run_by_its_clock: Run) -> None:
    async def scenario(store: TransientStore) -> None:
        await put(store, b"old", ttl=60)
        await put(store, b"new", ttl=SHORT)
        await asyncio.sleep(2 * SHORT)
        assert await store.get("code", KEY, now=NOW) is None
        await put(store, b"old", ttl=SHORT)
        await put(store, b"new", ttl=60)
        await asyncio.sleep(2 * SHORT)
        assert await store.get("code", KEY, now=NOW) == b"new"

    run_by_its_clock(scenario)


def test_a_store_without_a_clock_says_so(run_at: Run) -> None:
    """D49: then there is nothing that a node could compare its clock with."""

    async def scenario(store: TransientStore) -> None:
        assert await store.engine_time() is None

    run_at(scenario)


def test_an_engine_with_a_clock_tells_it(run_by_its_clock: Run) -> None:
    """D49: a node compares its clock with its store's; here both have the machine's."""

    async def scenario(store: TransientStore) -> None:
        before = time.time()
        told = await store.engine_time()
        assert told is not None
        assert before - 1 <= told <= time.time() + 1

    run_by_its_clock(scenario)


RACER = """
import json
from corpid.adapters.valkey import open_valkey

async def transient():
    if sys.argv[1].startswith("redis:"):
        store = await open_valkey(sys.argv[1], clock=time.time)
        return store, store.close
    stores = await opened()
    return stores.transient, stores.close

async def main():
    store, close = await transient()
    go()
    taken, first, numbers = [], [], []
    for turn in range(ROUNDS):
        key = turn.to_bytes(32, "big")
        async with store.unit(NOW) as unit:
            taken.append(await unit.take("code", key) == b"grant")
            first.append(await unit.add("jti", key, 60))
            numbers.append(await unit.count("requests", bytes(32), 60))
    print(json.dumps([taken, first, numbers]))
    await close()
asyncio.run(main())
"""


@contextmanager
def shared(engine: str, path: Path) -> Iterator[Path | str]:
    """The address of a store that several processes open."""
    if engine == "sqlite":
        yield path / "corpid.db"
        return
    with engines.redis() if engine == "redis" else engines.postgresql(migrated=True) as address:
        yield address


@asynccontextmanager
async def opened(engine: str, address: Path | str) -> AsyncIterator[TransientStore]:
    if engine == "redis":
        store = await open_valkey(str(address), clock=time.time)
        try:
            yield store
        finally:
            await store.close()
        return
    async with Place(address).opened() as stores:
        yield stores.transient


async def write_codes(engine: str, address: Path | str) -> None:
    async with opened(engine, address) as store, store.unit(NOW) as unit:
        for turn in range(ROUNDS):
            await unit.put("code", turn.to_bytes(32, "big"), b"grant", 60)


@pytest.mark.parametrize("engine", ["sqlite", "postgresql", "redis"])
def test_of_8_processes_one_wins_each_take_and_add_and_no_count_is_lost(engine: str, tmp_path: Path) -> None:
    """D7, D8, D18, D47: one-time across processes too."""
    with shared(engine, tmp_path) as address:
        asyncio.run(write_codes(engine, address))
        answers = [json.loads(answer) for answer in race(address, f"ROUNDS = {ROUNDS}" + RACER, processes=PROCESSES)]
    taken, first, numbers = zip(*answers, strict=True)
    assert [sum(wins) for wins in zip(*taken, strict=True)] == [1] * ROUNDS
    assert [sum(wins) for wins in zip(*first, strict=True)] == [1] * ROUNDS
    assert sorted(number for row in numbers for number in row) == list(range(1, PROCESSES * ROUNDS + 1))
