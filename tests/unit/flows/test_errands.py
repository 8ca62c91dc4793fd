"""What is done after a request, and never beside it (D47)."""

from __future__ import annotations

import asyncio

from corpid.flows.errands import WAITING, Errands


def test_an_errand_begins_later_and_at_once_when_corpid_stops() -> None:
    """D47: nothing of it is done before the request is over."""

    async def story() -> None:
        done: list[str] = []
        told: list[tuple[str, str]] = []
        errands = Errands(lambda event, detail: told.append((event, detail)))

        async def work() -> None:
            done.append("done")

        errands.later(work)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not done
        await errands.settle()
        await errands.settle()
        assert (done, told) == (["done"], [])

    asyncio.run(story())


def test_a_full_bag_drops_what_comes_and_says_so() -> None:
    async def story() -> None:
        done: list[str] = []
        told: list[str] = []
        errands = Errands(lambda event, _: told.append(event))

        async def work() -> None:
            done.append("done")

        for _ in range(WAITING + 1):
            errands.later(work)
        assert told == ["errand_dropped"]
        await errands.settle()
        assert len(done) == WAITING

    asyncio.run(story())


def test_one_that_fails_is_told_and_stops_no_other() -> None:
    """D48: by its kind only, since what it says may name somebody."""

    async def story() -> None:
        done: list[str] = []
        told: list[tuple[str, str]] = []
        errands = Errands(lambda event, detail: told.append((event, detail)))

        async def fails() -> None:
            raise KeyError("somebody@example.org")

        async def work() -> None:
            done.append("done")

        errands.later(fails)
        errands.later(work)
        await errands.settle()
        assert (done, told) == (["done"], [("errand_failed", "KeyError")])

    asyncio.run(story())
