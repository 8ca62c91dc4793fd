"""Work on many records that leaves the event loop to others (D59)."""

from __future__ import annotations

import asyncio
import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator

T = TypeVar("T")

AT_ONCE: Final = 50
"""records of a loop that reads something for each, before others have their turn"""
MANY: Final = 500
"""records from which on plain work with them goes to a thread"""


async def beside(work: Callable[[], T], number: int) -> T:
    """Return what pure work on this number of records returns.

    Many are worked on in a thread: the event loop then goes on. Whatever `work` raises is raised. Source: D59
    """
    return await asyncio.to_thread(work) if number > MANY else work()


async def in_turns(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield each item; others have their turn now and then. Source: D59"""
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
