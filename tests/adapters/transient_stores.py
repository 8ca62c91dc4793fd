"""Every sort of short-lived store, fresh, and its verbs."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

from tests import engines
from tests.adapters import on_redis
from tests.adapters.opened import NOW, lmdb_transient, memory_transient, postgresql_transient, sqlite_transient
from tests.clusters import redis_cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from pathlib import Path

    from corpid.stores.transient import TransientStore

Opened: TypeAlias = "Callable[[], AbstractAsyncContextManager[Any]]"

KEY, OTHER = b"k" * 32, b"o" * 32


@asynccontextmanager
async def redis_transient(path: Path, *, program: str = "redis") -> AsyncIterator[TransientStore]:
    """A store on an empty Redis or Valkey."""
    with engines.redis(program) as url:
        async with on_redis.opened(url) as store:
            yield store


@asynccontextmanager
async def cluster_transient(path: Path, *, program: str = "redis") -> AsyncIterator[TransientStore]:
    """A store on an empty cluster."""
    with redis_cluster(program) as url:
        async with on_redis.opened(url) as store:
            yield store


STORES: Final[dict[str, Callable[[Path], AbstractAsyncContextManager[TransientStore]]]] = {
    "memory": memory_transient,
    "sqlite": sqlite_transient,
    "lmdb": lmdb_transient,
    "postgresql": postgresql_transient,
    "redis": redis_transient,
    "cluster": cluster_transient,
    "valkey": partial(redis_transient, program="valkey"),
    "valkey cluster": partial(cluster_transient, program="valkey"),
}
WITHOUT_CLOCK: Final = ("memory", "sqlite", "lmdb")
WITH_CLOCK: Final = ("postgresql", "redis", "cluster", "valkey", "valkey cluster")
LONG: Final = ("cluster", "valkey", "valkey cluster")
WITH_TRANSACTIONS: Final = ("memory", "sqlite", "postgresql")


def listed(names: Iterable[str]) -> list[Any]:
    """Sorts of stores for a fixture to go through; `make test` leaves out those that are LONG."""
    return [pytest.param(name, marks=[pytest.mark.full] if name in LONG else []) for name in names]


def opened(store: str, path: Path) -> Opened:
    """Opens a fresh store each time."""
    return partial(STORES[store], path)


async def put(store: TransientStore, value: bytes, *, ttl: float = 60, now: float = NOW, kind: str = "code") -> None:
    async with store.batch(now) as batch:
        await batch.put(kind, KEY, value, ttl)


async def take(store: TransientStore, *, now: float = NOW) -> bytes | None:
    async with store.batch(now) as batch:
        return await batch.take("code", KEY)


async def add(store: TransientStore, *, now: float = NOW, ttl: float = 60, key: bytes = KEY) -> bool:
    async with store.batch(now) as batch:
        return await batch.add("jti", key, ttl)


async def count(store: TransientStore, *, now: float = NOW, ttl: float = 60) -> int:
    async with store.batch(now) as batch:
        return await batch.count("misses", KEY, ttl)
