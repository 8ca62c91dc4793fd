"""What lives for minutes was emptied, or is kept elsewhere than before: nothing is taken twice (docs/decisions/0011)."""

from __future__ import annotations

import asyncio
import base64
import time
from typing import TYPE_CHECKING, Any

import pytest

from corpid import engines, settings
from tests.adapters.on_redis import until
from tests.adapters.opened import KEY, race
from tests.clusters import redis_cluster
from tests.engines import RedisServer, redis

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from corpid.engines import Engines
    from tests.adapters.databases import Place

    Look = Callable[[Engines], Awaitable[Any]]

pytestmark = pytest.mark.full

PROOF = b"j" * 32
PROCESSES = 4


@pytest.fixture
def server(program: str) -> Iterator[RedisServer]:
    with RedisServer(program=program) as running:
        yield running


@pytest.fixture
def other(program: str) -> Iterator[RedisServer]:
    with RedisServer(program=program) as running:
        yield running


@pytest.fixture
def migrated(place: Place) -> Place:
    """A database of each engine that is ready for a first start."""
    place.run(lambda _: asyncio.sleep(0))
    return place


def chosen(place: Place, path: Path, transient_url: str = "") -> dict[str, str]:
    """Settings of one deployment, whose short-lived state is in a Redis, or in its database."""
    return {
        "base_url": "http://127.0.0.1:8000",
        "data_dir": str(path / "data"),
        "database_url": place.address if isinstance(place.address, str) else f"sqlite:///{place.address}",
        "transient_url": transient_url,
        "key_encryption_key": base64.b64encode(KEY).decode(),
    }


def started(options: dict[str, str], look: Look) -> Any:
    """What a process that starts sees."""

    async def run() -> Any:
        async with engines.open_stores(settings.load(**options), time.time) as opened:
            return await look(opened)

    return asyncio.run(run())


async def takes(opened: Engines, issued_at: float) -> bool:
    """Whether a proof of that moment is believed, and is the first."""
    if issued_at < opened.transient.loss.reject_issued_before:
        return False
    async with opened.transient.batch(time.time()) as batch:
        return await batch.add("proof", PROOF, 120)


async def reject_issued_before(opened: Engines) -> float:
    return opened.transient.loss.reject_issued_before


def taken(options: dict[str, str], issued_at: float) -> bool:
    return bool(started(options, lambda opened: takes(opened, issued_at)))


def test_a_redis_that_was_emptied_while_nobody_looked_on_takes_nothing_again(
    server: RedisServer, postgresql: Place, tmp_path: Path
) -> None:
    """D7, D8: the engine has run since before the deployment, and yet knows nothing of it."""
    options, issued_at = chosen(postgresql, tmp_path, server.url), time.time()
    assert taken(options, issued_at)
    assert not taken(options, issued_at)
    server.command("FLUSHALL")
    for _ in range(2):
        assert not taken(options, issued_at)


def test_a_cluster_that_was_emptied_while_nobody_looked_on_takes_nothing_again(
    postgresql: Place, tmp_path: Path, program: str
) -> None:
    """D7, D8. Its first start refused nothing."""
    with redis_cluster(program) as url:
        options, issued_at = chosen(postgresql, tmp_path, url), time.time()
        assert taken(options, issued_at)
    with redis_cluster(program):
        assert not taken(options, issued_at)


def test_another_redis_takes_nothing_that_the_one_before_took_nor_does_the_way_back(
    server: RedisServer, other: RedisServer, postgresql: Place, tmp_path: Path
) -> None:
    """D7, D8: each is older than the deployment, and the first is as it was left."""
    began_at = time.time()
    assert taken(chosen(postgresql, tmp_path, server.url), began_at)
    for url in (other.url, server.url):
        issued_at = time.time()
        for _ in range(2):
            assert not taken(chosen(postgresql, tmp_path, url), began_at)
            assert not taken(chosen(postgresql, tmp_path, url), issued_at)


def test_from_the_database_to_redis_and_back_nothing_is_taken_again(
    server: RedisServer, migrated: Place, tmp_path: Path
) -> None:
    """D7, D8: what was spent is known only where it was spent."""
    began_at = time.time()
    assert taken(chosen(migrated, tmp_path), began_at)
    for url in (server.url, "", server.url):
        issued_at = time.time()
        for _ in range(2):
            assert not taken(chosen(migrated, tmp_path, url), issued_at)


async def test_a_worker_that_starts_right_after_redis_was_emptied_takes_nothing_again(
    server: RedisServer, postgresql: Place, tmp_path: Path
) -> None:
    """D7, D8: also before the others have noticed, who learn it from the worker."""
    options = settings.load(**chosen(postgresql, tmp_path, server.url))

    async with engines.open_stores(options, time.time) as one:
        issued_at = time.time()
        assert await takes(one, issued_at)
        server.command("FLUSHALL")
        async with engines.open_stores(options, time.time) as worker:
            assert not await takes(worker, issued_at)
            await until(lambda: one.transient.loss.reject_issued_before > issued_at)


async def test_a_worker_that_starts_long_after_redis_was_lost_refuses_no_more_than_the_others(
    server: RedisServer, postgresql: Place, tmp_path: Path
) -> None:
    """The others looked on when it happened, so what is there since then is whole."""
    options = settings.load(**chosen(postgresql, tmp_path, server.url))

    async with engines.open_stores(options, time.time) as one:
        server.command("FLUSHALL")
        await until(lambda: one.transient.loss.reject_issued_before > 0.0)
        async with engines.open_stores(options, time.time) as worker:
            assert worker.transient.loss.reject_issued_before == one.transient.loss.reject_issued_before


def test_a_first_start_refuses_nothing_and_later_ones_know_it(migrated: Place, tmp_path: Path, program: str) -> None:
    """Nothing was issued that could have been spent, however young the engine is."""
    with RedisServer(program=program) as young:
        for _ in range(2):
            assert started(chosen(migrated, tmp_path, young.url), reject_issued_before) == 0.0


def test_a_first_start_without_redis_refuses_nothing_and_later_ones_know_it(migrated: Place, tmp_path: Path) -> None:
    for _ in range(2):
        assert started(chosen(migrated, tmp_path), reject_issued_before) == 0.0


def test_a_deployment_that_does_not_say_what_it_used_refuses_what_was_issued_before(
    server: RedisServer, postgresql: Place, tmp_path: Path
) -> None:
    """It is older than the note."""
    options = chosen(postgresql, tmp_path, server.url)
    assert started(options, reject_issued_before) == 0.0
    postgresql.sql("DELETE FROM deployment WHERE name = 'store_in_use'")
    before = time.time()
    assert started(options, reject_issued_before) > before


STARTING = """
from corpid import engines, settings

async def main():
    go()
    async with engines.open_stores(settings.load(**OPTIONS), time.time) as opened:
        first = opened.transient.loss.reject_issued_before
        await asyncio.sleep(2)
        print(first, opened.transient.loss.reject_issued_before, opened.transient.store_identity)
asyncio.run(main())
"""


@pytest.mark.parametrize("engine", [redis, redis_cluster])
def test_of_many_that_start_first_at_once_nobody_refuses_anything(
    engine: Callable[[], AbstractContextManager[str]], postgresql: Place, tmp_path: Path
) -> None:
    """One makes the keys, one begins the memory, and each of the others finds both."""
    with engine() as url:
        options = chosen(postgresql, tmp_path, url)
        answers = race(options["database_url"], f"OPTIONS = {options!r}\n{STARTING}", processes=PROCESSES)
    assert [answer.split()[:2] for answer in answers] == [["0.0", "0.0"]] * PROCESSES
    assert len(set(answers)) == 1
