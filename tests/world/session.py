"""What the tests of one process share: an event loop, and a database that providers use one after the other in it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

import pytest

from tests.world.provider import SharedStores

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


class _Session:
    """What is open in the loop of the session; a database only when a test has needed one."""

    def __init__(self) -> None:
        self.stack = AsyncExitStack()
        self.stores: SharedStores | None = None


_SESSION: Final = _Session()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The loop in which asynchronous tests and fixtures run."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
async def one_loop(anyio_backend: str) -> AsyncIterator[asyncio.AbstractEventLoop]:
    """Keep one loop for the whole session."""
    async with AsyncExitStack() as stack:
        _SESSION.stack = stack
        yield asyncio.get_running_loop()
    _SESSION.stores = None


@pytest.fixture
def no_task_left(one_loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Cancel what a test leaves running, as asyncio.run does; each asynchronous test has it."""
    others = asyncio.all_tasks(one_loop)
    yield
    left = asyncio.all_tasks(one_loop) - others
    for task in left:
        task.cancel()
    if left:
        one_loop.run_until_complete(asyncio.wait(left))


async def shared_stores() -> SharedStores:
    """The database that tests use one after the other, with nothing in it but what the first start makes."""
    if _SESSION.stores is None:
        _SESSION.stores = await _SESSION.stack.enter_async_context(SharedStores.opened())
    _SESSION.stores.reset()
    return _SESSION.stores
