"""PostgreSQL that goes away and comes back (docs/reliability.md)."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest

from corpid.rules.failures import StoreUnavailable
from tests.adapters.databases import Place
from tests.adapters.opened import NOW, program
from tests.engines import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid.stores.sql.open import SqlStores

pytestmark = pytest.mark.full

REPORTER = """
async def main():
    stores = await opened()
    go()
    for number in range(1_000_000):
        async with stores.transient.batch(NOW) as batch:
            assert await batch.add("jti", number.to_bytes(32), 600)
        print(number, flush=True)
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A durable server of this module's own, to be stopped and broken."""
    with PostgresServer(on_disk=True) as running:
        yield running


@pytest.fixture
def place(server: PostgresServer) -> Iterator[Place]:
    """A migrated, empty database of that server."""
    with server.migrated() as name:
        yield Place(server.dsn(name))


async def spend(stores: SqlStores, key: bytes) -> bool:
    async with stores.transient.batch(NOW) as batch:
        return await batch.add("jti", key, 600)


async def recovered(stores: SqlStores) -> None:
    """Until the store answers again, which it has to do without being opened anew."""
    for _ in range(200):
        try:
            await stores.registry.deployment.ready()
        except StoreUnavailable:
            await asyncio.sleep(0.05)
        else:
            return
    pytest.fail("the store did not recover")


@pytest.mark.parametrize("end", ["stop", "crash"])
async def test_a_server_that_went_away_is_told_and_found_again_with_all_that_was_spent(
    server: PostgresServer, place: Place, end: str
) -> None:
    """What was answered was written: engine restarts, in order or not, lose nothing."""
    async with place.opened() as stores:
        assert await asyncio.gather(*(spend(stores, bytes([number])) for number in range(20))) == [True] * 20
        getattr(server, end)()
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await spend(stores, b"while it is down")
            with pytest.raises(StoreUnavailable):
                await stores.registry.clients.get("rp")
            with pytest.raises(StoreUnavailable):
                await stores.registry.deployment.ready()
        server.start()
        await recovered(stores)
        assert await asyncio.gather(*(spend(stores, bytes([number])) for number in range(20))) == [False] * 20
        assert await spend(stores, b"while it is down")


async def test_a_server_that_hangs_is_told_and_its_late_answer_is_nobodys(place: Place) -> None:
    async with place.opened() as stores:
        assert await spend(stores, b"k")
        rows = place.sql("SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'corpid%'")
        hung = [int(pid) for (pid,) in rows]
        for pid in hung:
            os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(StoreUnavailable, match="does not answer in time"):
                await stores.registry.clients.get("rp")
            assert not await spend(stores, b"k")
        finally:
            for pid in hung:
                os.kill(pid, signal.SIGCONT)
        assert await stores.registry.clients.get("rp") is None


async def test_connections_that_the_server_ends_are_replaced(place: Place) -> None:
    async with place.opened() as stores:
        await asyncio.gather(*(spend(stores, bytes([number])) for number in range(20)))
        place.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'corpid%'")
        await recovered(stores)
        assert not any(await asyncio.gather(*(spend(stores, bytes([number])) for number in range(20))))


async def test_a_unit_that_loses_its_connection_is_refused_and_undone(place: Place) -> None:
    async def interrupted(stores: SqlStores) -> None:
        async with stores.transient.batch(NOW) as batch:
            await batch.add("jti", b"k", 600)
            place.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'corpid%'")

    async with place.opened() as stores:
        with pytest.raises(StoreUnavailable):
            await interrupted(stores)
        await recovered(stores)
        assert await spend(stores, b"k")


async def test_a_primary_that_became_read_only_is_told_and_left(server: PostgresServer, place: Place) -> None:
    """After a failover the old connections must not be kept: each new one may lead to the new primary."""
    async with place.opened() as stores:
        database = str(place.address).rpartition("/")[2]
        await spend(stores, b"before")
        server.sql(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
        place.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'corpid%'")
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await spend(stores, b"k")
        server.sql(f"ALTER DATABASE {database} RESET default_transaction_read_only")
        await recovered(stores)
        assert await spend(stores, b"k")


async def test_too_many_connections_are_told(server: PostgresServer, place: Place) -> None:
    database = str(place.address).rpartition("/")[2]
    server.sql("CREATE ROLE narrow LOGIN")
    place.sql("GRANT ALL ON ALL TABLES IN SCHEMA public TO narrow")

    async with Place(str(place.address).replace("corpid@", "narrow@")).opened() as stores:
        server.sql(f"ALTER DATABASE {database} CONNECTION LIMIT 0")
        place.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'corpid%'")
        await asyncio.sleep(0)
        with pytest.raises(StoreUnavailable, match=r"too many connections|closed"):
            await stores.registry.clients.get("rp")
        with pytest.raises(StoreUnavailable, match="too many connections"):
            await stores.registry.clients.get("rp")
        server.sql(f"ALTER DATABASE {database} CONNECTION LIMIT -1")
        await recovered(stores)


async def test_a_process_that_is_killed_has_spent_what_it_said(place: Place) -> None:
    """Process death: what was answered was written."""
    process = program(place.address, REPORTER)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.stdin.write("go\n")
    process.stdin.flush()
    spent = [int(process.stdout.readline()) for _ in range(50)]
    process.send_signal(signal.SIGKILL)
    spent += [int(line) for line in process.communicate(timeout=60)[0].split()]

    async with place.opened() as stores:
        assert not any([await spend(stores, number.to_bytes(32)) for number in spent])
