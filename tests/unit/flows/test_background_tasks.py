"""What is done after a request, and never beside it (D47)."""

from __future__ import annotations

import asyncio

from corpid.flows.background_tasks import WAITING, BackgroundTasks


async def test_a_task_begins_later_and_at_once_when_corpid_stops() -> None:
    """D47: nothing of it is done before the request is over."""
    done: list[str] = []
    told: list[tuple[str, str]] = []
    background_tasks = BackgroundTasks(lambda event, detail: told.append((event, detail)))

    async def work() -> None:
        done.append("done")

    background_tasks.later(work, place="")
    for _ in range(10):
        await asyncio.sleep(0)
    assert not done
    await background_tasks.settle()
    await background_tasks.settle()
    assert (done, told) == (["done"], [])


async def test_a_full_bag_drops_what_comes_and_says_so() -> None:
    done: list[str] = []
    told: list[str] = []
    background_tasks = BackgroundTasks(lambda event, _: told.append(event))

    async def work() -> None:
        done.append("done")

    for _ in range(WAITING + 1):
        background_tasks.later(work, place="")
    assert told == ["background_task_dropped"]
    await background_tasks.settle()
    assert len(done) == WAITING


async def test_who_fills_the_bag_keeps_nobody_out_who_comes_from_elsewhere() -> None:
    """D47: the newest of whoever has most in it makes room."""
    done: list[str] = []
    background_tasks = BackgroundTasks(lambda _event, _detail: None)

    def bring(place: str) -> None:
        async def work() -> None:
            done.append(place)

        background_tasks.later(work, place=place)

    for number in range(WAITING):
        bring(f"crowd {number % 10}")
    for place in ("owner", "owner", "another", "crowd 1"):
        bring(place)
    await background_tasks.settle()
    assert len(done) == WAITING
    assert (done.count("owner"), done.count("another")) == (2, 1)


async def test_one_that_fails_is_told_and_stops_no_other() -> None:
    """D48: by its kind only, since what it says may name somebody."""
    done: list[str] = []
    told: list[tuple[str, str]] = []
    background_tasks = BackgroundTasks(lambda event, detail: told.append((event, detail)))

    async def fails() -> None:
        raise KeyError("somebody@example.org")

    async def work() -> None:
        done.append("done")

    background_tasks.later(fails, place="")
    background_tasks.later(work, place="")
    await background_tasks.settle()
    assert (done, told) == (["done"], [("background_task_failed", "KeyError")])
