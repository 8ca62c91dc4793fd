"""Redis or Valkey that hangs, is down or is full, and requests that are given up (docs/reliability.md)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from corpid.rules.failures import StoreUnavailable
from corpid.rules.oauth.errors import InvalidGrant
from corpid.rules.oauth.refusals import Reason
from tests.adapters.on_redis import KEY, NOW, OTHER, add, opened, put, recovered, take
from tests.engines import RedisServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid.stores.valkey.transient import ValkeyTransientStore

pytestmark = pytest.mark.full


@pytest.fixture
def server(program: str) -> Iterator[RedisServer]:
    with RedisServer(program=program) as running:
        yield running


async def test_an_engine_that_hangs_is_unavailable_until_it_answers_again(server: RedisServer) -> None:
    async with opened(server.url) as store:
        await put(store)
        server.pause()
        with pytest.raises(StoreUnavailable, match=r"did not answer|no answer"):
            await take(store)
        with pytest.raises(StoreUnavailable):
            await store.engine_time()
        server.resume()
        assert await recovered(lambda: add(store))


async def test_an_engine_that_is_down_is_unavailable_at_once_and_comes_back(server: RedisServer) -> None:
    async with opened(server.url) as store:
        server.stop()
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match=f"{server.name} at 127.0.0.1:{server.port}"):
                await add(store)
        server.start()
        assert await recovered(lambda: add(store))


async def test_a_request_that_was_given_up_leaves_no_answer_for_another(server: RedisServer) -> None:
    async def look(store: ValkeyTransientStore, number: int) -> bytes | None:
        return await store.get("code", number.to_bytes(32, "big"), now=NOW)

    async with opened(server.url) as store:
        async with store.batch(NOW) as batch:
            for number in range(100):
                await batch.put("code", number.to_bytes(32, "big"), str(number).encode(), 60)
        looks = [asyncio.create_task(look(store, number)) for number in range(100)]
        await asyncio.sleep(0)
        for given_up in looks[::2]:
            given_up.cancel()
        assert await asyncio.gather(*looks[1::2]) == [str(number).encode() for number in range(1, 100, 2)]
        await asyncio.gather(*looks, return_exceptions=True)


async def test_after_a_fault_what_was_spent_stays_spent_and_nothing_more_is_written(server: RedisServer) -> None:
    """There are no transactions: a flow that broke leaves less than it promised, never more."""

    async def fail(store: ValkeyTransientStore, error: Exception) -> None:
        async with store.batch(NOW) as batch:
            await batch.take("code", KEY)
            await batch.put("code", OTHER, b"grant", 60)
            raise error

    async with opened(server.url) as store:
        await put(store)
        with pytest.raises(RuntimeError, match="a fault"):
            await fail(store, RuntimeError("a fault"))
        assert await take(store) is None
        assert await store.get("code", OTHER, now=NOW) is None
        with pytest.raises(InvalidGrant):
            await fail(store, InvalidGrant(Reason.CODE_UNKNOWN, "Refused."))
        assert await store.get("code", OTHER, now=NOW) == b"grant"


async def test_a_full_engine_refuses_rather_than_forgets(server: RedisServer) -> None:
    async with opened(server.url) as store:
        server.command("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(StoreUnavailable, match="maxmemory"):
            await put(store)
        server.command("CONFIG", "SET", "maxmemory", "0")
        await put(store)
        assert await take(store) == b"grant"


async def test_a_lost_connection_to_the_same_run_loses_nothing(server: RedisServer) -> None:
    async with opened(server.url) as store:
        await put(store)
        assert await add(store)
        before = store.loss.reject_issued_before
        for _ in range(5):
            server.command("CLIENT", "KILL", "TYPE", "normal")
            assert not await recovered(lambda: add(store))
        assert store.loss.reject_issued_before == before
        assert await take(store) == b"grant"
