"""Work on many records without blocking the event loop (D59)."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

T = TypeVar("T")

AT_ONCE: Final = 50
"""records read in a loop before it yields to other tasks"""
MANY: Final = 500
"""the number of records above which work runs in a thread"""


async def in_thread_if_many(work: Callable[[], T], number: int) -> T:
    """Run pure work on a number of records.

    For many records it runs in a thread, so that the event loop continues. Raises the exceptions of `work`. Source: D59
    """
    return await asyncio.to_thread(work) if number > MANY else work()


async def in_turns(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield each item, and yield to other tasks regularly. Source: D59"""
    for number, item in enumerate(items, start=1):
        yield item
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)


@contextmanager
def without_collector() -> Iterator[None]:
    """Keep the garbage collector away from a large document.

    Each of its runs over some million objects would stop every thread. They leave no cycles. Source: D59
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
