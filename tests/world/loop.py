"""The one loop of a test process in which providers run one after the other, and the database that they share."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tests.world.provider import SharedStores

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


class _Loop:
    """A runner that is made when it is first needed, and what stays open in it."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._stack = AsyncExitStack()
        self._stores: SharedStores | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(work, context=copy_context())

    def stores(self) -> SharedStores:
        if self._stores is None:
            self._stores = self.run(self._stack.enter_async_context(SharedStores.opened()))
        return self._stores

    def close(self) -> None:
        if self._runner is not None:
            self._runner.run(self._stack.aclose())
            self._runner.close()
        self._runner, self._stores = None, None


_LOOP: Final = _Loop()
close: Final = _LOOP.close
"""End what runs; tests/conftest.py calls it at the end of the session."""


def run_alone(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine as asyncio.run does: tasks that it leaves behind are cancelled at its end."""

    async def alone() -> T:
        others = asyncio.all_tasks()
        try:
            return await work
        finally:
            left = asyncio.all_tasks() - others
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    return _LOOP.run(alone())


def shared_stores() -> SharedStores:
    """The database that tests of this process use one after the other, with nothing in it but what the first start makes."""
    stores = _LOOP.stores()
    stores.reset()
    return stores
