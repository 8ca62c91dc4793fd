"""Parts of the application that are loaded by the first request for them (D59, D60)."""

from __future__ import annotations

import asyncio
import time
from functools import cache

from corpid.web import routes


async def test_what_several_requests_need_first_is_made_once() -> None:
    """Two of them at the same moment must not load a library twice at once."""
    calls: list[None] = []

    @cache
    def make() -> object:
        calls.append(None)
        time.sleep(0.05)
        return object()

    async def test() -> list[object]:
        return await asyncio.gather(*(routes._on_first_use(make) for _ in range(5)))

    assert len({id(each) for each in await test()}) == 1
    assert len(calls) == 1
