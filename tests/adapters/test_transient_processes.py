"""One-time across processes, on every short-lived store that several can open."""

from __future__ import annotations

import asyncio
import json
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests import engines
from tests.adapters import on_redis
from tests.adapters.databases import Place
from tests.adapters.opened import NOW, lmdb_transient, lmdb_url, race
from tests.clusters import redis_cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from corpid.stores.transient import TransientStore

PROCESSES: Final = 8
ROUNDS: Final = 25
ON_REDIS: Final[dict[str, Callable[[], AbstractContextManager[str]]]] = {
    "redis": engines.redis,
    "cluster": redis_cluster,
    "valkey": partial(engines.redis, "valkey"),
    "valkey cluster": partial(redis_cluster, "valkey"),
}
LONG: Final = [
    pytest.param(engine, marks=pytest.mark.full) for engine in ("postgresql", "cluster", "valkey", "valkey cluster")
]

RACER = """
import json
from corpid.stores.transient import find_engine, transient_engine, transient_engines
from corpid.stores.valkey.incarnations import NoOrderlyStops

async def transient():
    if find_engine(sys.argv[1], transient_engines()):
        store = await transient_engine(sys.argv[1]).open(clock=time.time, stops=NoOrderlyStops())
        return store, store.close
    stores = await opened()
    return stores.transient, stores.close

async def main():
    store, close = await transient()
    go()
    taken, first, numbers = [], [], []
    for turn in range(ROUNDS):
        key = turn.to_bytes(32, "big")
        async with store.batch(NOW) as batch:
            taken.append(await batch.take("code", key) == b"grant")
            first.append(await batch.add("jti", key, 60))
            numbers.append(await batch.count("requests", bytes(32), 60))
    print(json.dumps([taken, first, numbers]))
    await close()
asyncio.run(main())
"""


@contextmanager
def shared(engine: str, path: Path) -> Iterator[Path | str]:
    """The address of a store that several processes open."""
    if engine == "sqlite":
        yield path / "corpid.db"
        return
    if engine == "lmdb":
        yield lmdb_url(path)
        return
    with ON_REDIS[engine]() if engine in ON_REDIS else engines.postgresql(migrated=True) as address:
        yield address


@asynccontextmanager
async def opened(engine: str, address: Path | str) -> AsyncIterator[TransientStore]:
    if engine in ON_REDIS:
        async with on_redis.opened(str(address)) as store:
            yield store
        return
    if engine == "lmdb":
        async with lmdb_transient(Path(str(address).removeprefix("lmdb://")).parent) as store:
            yield store
        return
    async with Place(address).opened() as stores:
        yield stores.transient


async def write_codes(engine: str, address: Path | str) -> None:
    async with opened(engine, address) as store, store.batch(NOW) as batch:
        for turn in range(ROUNDS):
            await batch.put("code", turn.to_bytes(32, "big"), b"grant", 60)


@pytest.mark.full
@pytest.mark.parametrize("engine", ["sqlite", "lmdb", "redis", *LONG])
def test_of_8_processes_one_wins_each_take_and_add_and_no_count_is_lost(engine: str, tmp_path: Path) -> None:
    """D7, D8, D18, D47: one-time across processes too."""
    with shared(engine, tmp_path) as address:
        asyncio.run(write_codes(engine, address))
        answers = [json.loads(answer) for answer in race(address, f"ROUNDS = {ROUNDS}" + RACER, processes=PROCESSES)]
    taken, first, numbers = zip(*answers, strict=True)
    assert [sum(wins) for wins in zip(*taken, strict=True)] == [1] * ROUNDS
    assert [sum(wins) for wins in zip(*first, strict=True)] == [1] * ROUNDS
    assert sorted(number for row in numbers for number in row) == list(range(1, PROCESSES * ROUNDS + 1))
