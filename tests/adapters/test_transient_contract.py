"""What every short-lived store promises (docs/architecture.md, "One-time use")."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from corpid.flows.namespaces import Namespace
from corpid.rules.transient import PipelinedVerb
from tests.adapters.opened import NOW
from tests.adapters.transient_stores import KEY, OTHER, Opened, add, count, put, take

if TYPE_CHECKING:
    from corpid.stores.transient import TransientStore

RACERS: Final = 64


async def test_of_64_takes_exactly_one_gets_the_value(opened: Opened) -> None:
    """D18: a code is spent by one atomic take."""
    async with opened() as store:
        await put(store, b"grant")
        taken = await asyncio.gather(*(take(store) for _ in range(RACERS)))
        assert (taken.count(b"grant"), taken.count(None)) == (1, RACERS - 1)


async def test_of_64_adds_exactly_one_is_the_first(opened: Opened) -> None:
    """D7, D8: a jti is used once."""
    async with opened() as store:
        firsts = await asyncio.gather(*(add(store) for _ in range(RACERS)))
        assert firsts.count(True) == 1


async def test_64_counts_give_64_different_numbers(opened: Opened) -> None:
    """D47: no attempt goes uncounted."""
    async with opened() as store:
        numbers = await asyncio.gather(*(count(store) for _ in range(RACERS)))
        assert sorted(numbers) == list(range(1, RACERS + 1))


async def test_a_count_is_raised_and_lowered_by_any_number_and_none_is_lost(opened: Opened) -> None:
    """D47: one record can hold two numbers, and an attempt can be given back; a take returns what is left."""
    large = 1 << 61

    async def one(store: TransientStore, by: int) -> None:
        async with store.batch(NOW) as batch:
            await batch.count("misses", KEY, 60, by)

    async def left(store: TransientStore) -> int | None:
        async with store.batch(NOW) as batch:
            value = await batch.take("misses", KEY)
        return None if value is None else int(value)

    async with opened() as store:
        async with store.batch(NOW) as batch:
            assert await batch.count("misses", KEY, 60, -1) == -1
            assert await batch.count("misses", KEY, 60, large) == large - 1
        steps = [by for _ in range(RACERS // 4) for by in (1, 7, -3, large // RACERS)]
        await asyncio.gather(*(one(store, by) for by in steps))
        assert await left(store) == large - 1 + sum(steps)
        assert await left(store) is None


async def test_kinds_and_keys_are_separate(opened: Opened) -> None:
    """docs/architecture.md, "One-time use": kinds are separate namespaces; what is spent in one is not in another."""
    async with opened() as store:
        await put(store, b"code", kind="code")
        await put(store, b"pushed", kind="pushed_request")
        assert await take(store) == b"code"
        assert await store.get("pushed_request", KEY, now=NOW) == b"pushed"
        assert await add(store)
        assert await add(store, key=OTHER)


async def test_any_bytes_come_back_as_they_went_in(opened: Opened) -> None:
    async with opened() as store:
        for value in (b"", b"\x00\xff", b"7", bytes(range(256)) * 40):
            await put(store, value)
            assert await store.get("code", KEY, now=NOW) == value


async def test_a_look_outside_a_unit_spends_nothing(opened: Opened) -> None:
    async with opened() as store:
        await put(store, b"grant")
        assert [await store.get("code", KEY, now=NOW) for _ in range(2)] == [b"grant"] * 2
        assert await store.get("code", OTHER, now=NOW) is None


async def test_a_store_that_takes_writes_is_ready_as_often_as_it_is_asked(opened: Opened) -> None:
    """D49: asking leaves what is kept as it is."""
    async with opened() as store:
        await put(store, b"grant")
        for _ in range(3):
            await store.ready(now=NOW)
        assert await take(store) == b"grant"


async def test_several_looks_takes_and_counts_together_are_each_as_if_it_were_alone(opened: Opened) -> None:
    """Answers come in the order of the questions, and a `put` of before is seen."""
    async with opened() as store:
        async with store.batch(NOW) as batch:
            await batch.put("code", KEY, b"one", 60)
            assert await batch.count_each([("misses", KEY, 60.0), ("misses", OTHER, 60.0)]) == [1, 1]
            await batch.put("code", OTHER, b"two", 60)
            taken = [
                PipelinedVerb("take", "code", OTHER),
                PipelinedVerb("take", "nothing", KEY),
                PipelinedVerb("take", "code", KEY),
            ]
            assert await batch.pipeline(taken) == [b"two", None, b"one"]
            others = [
                PipelinedVerb("get", "misses", KEY),
                PipelinedVerb("add", "misses", OTHER, 60),
                PipelinedVerb("add", "code", KEY, 60, b"3"),
            ]
            assert await batch.pipeline(others) == [b"1", False, True]
            await batch.count_unseen("misses", KEY, 60, 2)
            await batch.count_unseen("misses", OTHER, 60, 5)
        assert await store.get_each([("code", KEY), ("misses", OTHER), ("misses", KEY)], now=NOW) == [b"3", b"6", b"3"]


async def test_of_64_that_take_or_count_several_together_none_gets_what_another_got(opened: Opened) -> None:
    """D18, D47."""
    places = [("misses", KEY, 60.0), ("misses", OTHER, 60.0)]

    async def counted(store: TransientStore) -> list[int]:
        async with store.batch(NOW) as batch:
            return await batch.count_each(places)

    async def taken(store: TransientStore) -> list[bytes | bool | None]:
        async with store.batch(NOW) as batch:
            return await batch.pipeline([PipelinedVerb("take", "misses", KEY), PipelinedVerb("take", "misses", OTHER)])

    async with opened() as store:
        numbers = await asyncio.gather(*(counted(store) for _ in range(RACERS)))
        for column in zip(*numbers, strict=True):
            assert sorted(column) == list(range(1, RACERS + 1))
        values = await asyncio.gather(*(taken(store) for _ in range(RACERS)))
        for found in zip(*values, strict=True):
            assert [value for value in found if value is not None] == [b"%d" % RACERS]


async def test_a_count_that_is_0_again_is_read_as_0(opened: Opened) -> None:
    """D47: an attempt that was given back leaves a counter that can be read, taken and raised."""
    namespace = Namespace("misses", 60, int)

    async with opened() as store:
        entry = namespace.entry("https://id.example", "alice")
        async with store.batch(NOW) as batch:
            assert await entry.count(batch, 1) == 1
            assert await entry.count(batch, -1) == 0
            assert await entry.get(batch) == 0
        assert await entry.read(store, now=NOW) == 0
        async with store.batch(NOW) as batch:
            assert await entry.take(batch) == 0
            assert await entry.take(batch) is None
