"""What the tests of Redis have in common: one store, its verbs, and waiting until it is there again."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import pytest

from corpid.rules.failures import StoreUnavailable
from corpid.stores.valkey.transient import ValkeyTransientStore, open_valkey

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    T = TypeVar("T")

KEY, OTHER = b"k" * 32, b"o" * 32
NOW = 0.0
"""decides nothing: the engine's clock does"""
PASSWORD = "never-shown"
RULES = ("~corpid:*", "+@read", "+@write", "-@dangerous", "+info", "+time")
"""what the user of CorpID may do, as the documents say it"""
PATIENCE_SECONDS = 30


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[ValkeyTransientStore]:
    store = await open_valkey(url, clock=time.time)
    try:
        yield store
    finally:
        await store.close()


async def put(store: ValkeyTransientStore, key: bytes = KEY) -> None:
    async with store.batch(NOW) as batch:
        await batch.put("code", key, b"grant", 60)


async def take(store: ValkeyTransientStore, key: bytes = KEY) -> bytes | None:
    async with store.batch(NOW) as batch:
        return await batch.take("code", key)


async def add(store: ValkeyTransientStore, key: bytes = KEY) -> bool:
    async with store.batch(NOW) as batch:
        return await batch.add("proof", key, 120)


async def recovered(attempt: Callable[[], Awaitable[T]], *, pause: float = 0.02) -> T:
    """What it answers as soon as the store is there again."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                return await attempt()
            except StoreUnavailable:
                await asyncio.sleep(pause)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if true():
                return
            await asyncio.sleep(0.02)


async def refused(url: str) -> str:
    """What `open_valkey` says, which is never the password."""
    with pytest.raises(StoreUnavailable) as error:
        await open_valkey(url, clock=time.time)
    assert PASSWORD not in str(error.value)
    return str(error.value)


def refusal(url: str) -> str:
    """What `open_valkey` says."""
    return asyncio.run(refused(url))
