"""Counts of guesses at codes, on each engine (D45)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from corpid.rules.authentication.throttling import CodeGuesses, CodesPaused, one_more
from corpid.rules.limits import CODE_GUESSES
from tests.adapters.opened import EVENT, NOW
from tests.adapters.stored_records import LIM, TAN, remove, write

if TYPE_CHECKING:
    from tests.adapters.databases import Place

NONE = CodeGuesses(user_id=TAN.user_id)
ONE = replace(NONE, factors="f", guesses=1)


async def test_a_count_is_replaced_only_as_it_was_seen(place: Place) -> None:
    """D45: of two guesses at once the second counts again."""
    async with place.opened() as stores:
        counts = stores.registry.code_guesses
        await write(stores, TAN)
        assert await counts.get(TAN.user_id, "") == NONE
        assert await counts.replace(NONE, ONE)
        assert not await counts.replace(NONE, replace(ONE, guesses=7))
        two = replace(ONE, guesses=2, paused_until=9, told_at=8)
        assert await counts.replace(ONE, two)
        for stale in (ONE, replace(two, factors="g"), replace(two, paused_until=0)):
            assert not await counts.replace(stale, replace(two, guesses=3))
        assert await counts.get(TAN.user_id, "") == two


async def test_of_many_guesses_at_once_no_more_are_tried_than_are_allowed(place: Place) -> None:
    """D45"""
    async with place.opened() as stores:
        counts = stores.registry.code_guesses
        await write(stores, TAN)

        async def guess() -> bool:
            while True:
                seen = await counts.get(TAN.user_id, "")
                try:
                    after = one_more(seen, "f", NOW)
                except CodesPaused:
                    return False
                if await counts.replace(seen, after):
                    return True

        assert sum(await asyncio.gather(*(guess() for _ in range(3 * CODE_GUESSES)))) == CODE_GUESSES


async def test_a_count_is_forgotten_by_itself_or_with_all_of_its_person(place: Place) -> None:
    """D45, D47: the operator's unlocking stands in the audit."""
    async with place.opened() as stores:
        counts = stores.registry.code_guesses
        await write(stores, TAN, LIM)
        for browser in ("", "link", "b1"):
            assert await counts.replace(replace(NONE, browser=browser), replace(ONE, browser=browser))
        theirs = replace(ONE, user_id=LIM.user_id)
        assert await counts.replace(CodeGuesses(user_id=LIM.user_id), theirs)
        await counts.forget(TAN.user_id, "b1")
        left = [(await counts.get(TAN.user_id, browser)).guesses for browser in ("", "link", "b1")]
        assert left == [1, 1, 0]
        before = len(await stores.registry.audit.entries())
        await counts.forget_all(TAN.user_id, EVENT)
        assert [(await counts.get(TAN.user_id, browser)).guesses for browser in ("", "link")] == [0, 0]
        assert len(await stores.registry.audit.entries()) == before + 1
        assert await counts.get(LIM.user_id, "") == theirs
        await remove(stores, LIM)
        assert (await counts.get(LIM.user_id, "")).guesses == 0


async def test_a_count_outlives_what_lives_for_minutes(place: Place) -> None:
    """D45: the pause survives a restart."""
    async with place.opened() as stores:
        await write(stores, TAN)
        assert await stores.registry.code_guesses.replace(NONE, ONE)
    place.sql("DELETE FROM transient")
    async with place.opened() as stores:
        assert await stores.registry.code_guesses.get(TAN.user_id, "") == ONE
