"""When what lives for minutes ends, on every short-lived store (D49)."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from tests.adapters.opened import NOW
from tests.adapters.transient_stores import KEY, Opened, add, count, put, take

if TYPE_CHECKING:
    from corpid.stores.transient import TransientStore

SHORT: Final = 0.1
"""a lifetime by the engine's clock; a test that waits for its end waits twice as long"""


async def test_a_value_is_live_before_its_expiry_and_gone_at_it(opened_at: Opened) -> None:
    """Spec 8, D49: codes and pushed requests end exactly."""
    async with opened_at() as store:
        await put(store, b"grant", ttl=60)
        assert await store.get("code", KEY, now=NOW + 59.999) == b"grant"
        assert await store.get("code", KEY, now=NOW + 60) is None
        assert await take(store, now=NOW + 60) is None
        assert await take(store, now=NOW + 59.999) == b"grant"


async def test_add_is_first_again_at_expiry_and_not_before(opened_at: Opened) -> None:
    """D49: the record of what was spent ends when it says."""
    async with opened_at() as store:
        assert await add(store, ttl=120)
        assert not await add(store, ttl=120, now=NOW + 119.999)
        assert await add(store, ttl=120, now=NOW + 120)
        assert not await add(store, ttl=120, now=NOW + 121)


async def test_a_refused_add_lengthens_nothing_and_changes_no_value(opened_at: Opened) -> None:
    async with opened_at() as store:
        async with store.batch(NOW) as batch:
            assert await batch.add("claim", KEY, 60, b"first")
            assert not await batch.add("claim", KEY, 600, b"second")
        assert await store.get("claim", KEY, now=NOW + 59) == b"first"
        assert await store.get("claim", KEY, now=NOW + 60) is None


async def test_a_counter_lives_from_its_first_raise_only(opened_at: Opened) -> None:
    """D47: later attempts do not lengthen the count, which starts anew when its life is over."""
    async with opened_at() as store:
        assert await count(store, ttl=60) == 1
        assert await count(store, ttl=60, now=NOW + 59) == 2
        assert await store.get("misses", KEY, now=NOW + 59) == b"2"
        assert await count(store, ttl=60, now=NOW + 60) == 1
        assert await count(store, ttl=60, now=NOW + 119) == 2


async def test_put_writes_over_value_and_lifetime(opened_at: Opened) -> None:
    async with opened_at() as store:
        await put(store, b"old", ttl=600)
        await put(store, b"new", ttl=10)
        assert await store.get("code", KEY, now=NOW) == b"new"
        assert await store.get("code", KEY, now=NOW + 10) is None


async def test_sweeps_find_everything_that_expired_and_nothing_live(opened_at: Opened) -> None:
    async with opened_at() as store:
        async with store.batch(NOW) as batch:
            for number in range(1200):
                await batch.put(f"kind{number % 3}", number.to_bytes(32, "big"), b"", 10)
            await batch.put("code", KEY, b"live", 10.001)
        assert sum([await store.sweep(now=NOW + 9.999) for _ in range(9)]) == 0
        assert sum([await store.sweep(now=NOW + 10) for _ in range(9)]) == 1200
        assert await store.get("code", KEY, now=NOW + 10) == b"live"


async def test_the_engines_clock_decides_expiry_not_the_requests(opened_by_its_clock: Opened) -> None:
    """D49: nodes whose clocks differ agree about what has expired."""

    async def first_then_again(store: TransientStore) -> bool:
        assert await add(store)
        return await add(store, now=NOW + 3600)

    async with opened_by_its_clock() as store:
        await put(store, b"grant", ttl=60)
        assert await store.get("code", KEY, now=NOW + 3600) == b"grant"
        assert not await first_then_again(store)
        assert await take(store, now=NOW + 3600) == b"grant"


async def test_by_the_engines_clock_everything_ends_too(opened_by_its_clock: Opened) -> None:
    """Spec 8, D47, D49: nothing outlives its time, and a later raise or a refused add lengthens nothing."""
    async with opened_by_its_clock() as store:
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


async def test_by_the_engines_clock_put_writes_over_the_lifetime(opened_by_its_clock: Opened) -> None:
    async with opened_by_its_clock() as store:
        await put(store, b"old", ttl=60)
        await put(store, b"new", ttl=SHORT)
        await asyncio.sleep(2 * SHORT)
        assert await store.get("code", KEY, now=NOW) is None
        await put(store, b"old", ttl=SHORT)
        await put(store, b"new", ttl=60)
        await asyncio.sleep(2 * SHORT)
        assert await store.get("code", KEY, now=NOW) == b"new"


async def test_a_store_without_a_clock_says_so(opened_at: Opened) -> None:
    """D49: then there is nothing that a node could compare its clock with."""
    async with opened_at() as store:
        assert await store.engine_time() is None


async def test_an_engine_with_a_clock_tells_it(opened_by_its_clock: Opened) -> None:
    """D49: a node compares its clock with its store's; here both have the machine's."""
    async with opened_by_its_clock() as store:
        before = time.time()
        told = await store.engine_time()
        assert told is not None
        assert before - 1 <= told <= time.time() + 1
