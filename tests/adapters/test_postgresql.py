"""What holds on PostgreSQL alone: whose a transaction is, its clock, and how its failures are told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import asyncpg
import pytest
import sqlalchemy as sa

from corpid.rules.authentication.records import Session
from corpid.rules.directory.records import Change, Conflict, MissingReference, NameTaken, User
from corpid.rules.failures import StoreUnavailable
from corpid.rules.oauth.errors import InvalidGrant
from corpid.rules.oauth.refusals import Reason
from corpid.stores.encryption_at_rest import SecretCipher
from corpid.stores.sql.open import SqlStores, open_postgresql
from corpid.stores.sql.postgresql import open_database, parse_address, translate_error
from corpid.stores.sql.statements import Statement
from tests.adapters.opened import EVENT, KEY, NOW, SPENDER, race

if TYPE_CHECKING:
    from tests.adapters.databases import Place

ORPHAN = Session(
    session_id="s", user_id="nobody", browser_id="b", auth_time=1, amr=(), level=2, expires_at=int(NOW) + 60
)

SWEEPER = """
async def main():
    stores = await opened()
    go()
    removed = 0
    for number in range(60):
        removed += await stores.transient.sweep(now=0)
        async with stores.transient.batch(NOW) as batch:
            for place in (7 * number, 11 * number, number):
                await batch.count("old", place.to_bytes(32), 600)
    print(removed)
    await stores.close()
asyncio.run(main())
"""


async def test_a_transaction_belongs_to_the_task_that_began_it_and_not_to_its_children(postgresql: Place) -> None:
    """A task started inside a batch would otherwise write into a transaction that ends under it."""

    async def undone(stores: SqlStores) -> None:
        async with stores.transient.batch(NOW) as batch:
            await batch.add("jti", b"k", 60)
            await asyncio.create_task(stores.registry.audit.write(EVENT, now=NOW))
            raise RuntimeError("a fault")

    async with postgresql.opened() as stores:
        with pytest.raises(RuntimeError, match="a fault"):
            await undone(stores)
        assert [entry.actor for entry in await stores.registry.audit.entries()] == [EVENT.actor]


async def test_a_unit_whose_statement_was_refused_never_pretends_to_have_spent(postgresql: Place) -> None:
    """PostgreSQL undoes the whole transaction; an answer that says "spent" must not leave."""

    async def refused(stores: SqlStores) -> None:
        async with stores.transient.batch(NOW) as batch:
            assert await batch.add("jti", b"k", 60)
            try:
                await stores.registry.sessions.put(ORPHAN)
            except MissingReference:
                raise InvalidGrant(Reason.CODE_UNKNOWN, "The user is gone.") from None

    async with postgresql.opened() as stores:
        with pytest.raises(StoreUnavailable, match="nothing was written"):
            await refused(stores)
        async with stores.transient.batch(NOW) as batch:
            assert await batch.add("jti", b"k", 60)


async def test_short_lived_things_expire_by_the_servers_clock(postgresql: Place) -> None:
    """D49: a node whose clock is years off neither revives nor ends anything."""
    async with postgresql.opened() as stores:
        for now, other in ((0.0, NOW * 2), (NOW * 2, 0.0)):
            async with stores.transient.batch(now) as batch:
                await batch.put("code", b"live", b"grant", 600)
                await batch.put("code", b"gone", b"grant", 0)
                assert await batch.get("code", b"gone") is None
            assert await stores.transient.get("code", b"live", now=other) == b"grant"
            assert await stores.transient.get("code", b"gone", now=0) is None
        told = await stores.transient.engine_time()
        ((server,),) = postgresql.sql("SELECT extract(epoch FROM clock_timestamp())")
        assert told is not None
        assert told <= float(server)


async def test_a_text_that_postgresql_cannot_keep_is_found_nowhere_and_refused(postgresql: Place) -> None:
    """Whatever a request says, it is an answer of the protocol's and no fault of ours."""
    async with postgresql.opened() as stores:
        assert await stores.registry.clients.get("a\0b") is None
        assert await stores.registry.directory.services(["\0"]) == []
        with pytest.raises(Conflict, match=r"U\+0000"):
            await stores.registry.directory.write(
                [Change(None, User(user_id="u\0", user_name="lim", name="Lim"))], EVENT
            )


@pytest.mark.full
def test_of_8_processes_one_wins_each_add_and_no_count_is_lost(postgresql: Place) -> None:
    """docs/architecture.md, "One-time use"."""
    assert sum(map(int, race(postgresql.address, SPENDER, processes=8))) == 200
    assert postgresql.sql("SELECT count FROM transient WHERE kind = 'requests'") == [("1600",)]


@pytest.mark.full
def test_sweeps_of_several_processes_wait_for_nobody(postgresql: Place) -> None:
    """No deadlock with each other or with batches that write over what expired."""
    postgresql.sql(
        "INSERT INTO transient SELECT 'old', decode(lpad(to_hex(n), 64, '0'), 'hex'), '', 1, n "
        "FROM generate_series(0, 4999) n"
    )
    removed = sum(map(int, race(postgresql.address, SWEEPER, processes=4)))
    ((live,),) = postgresql.sql("SELECT sum(count) FROM transient")
    assert removed > 4000
    assert live == str(4 * 60 * 3)


@pytest.mark.full
async def test_who_gets_no_connection_is_refused(postgresql: Place) -> None:
    stores = await open_postgresql(str(postgresql.address), SecretCipher(KEY), lambda: NOW, pool_size=1)
    async with stores.transient.batch(NOW):
        with pytest.raises(StoreUnavailable, match="does not answer in time"):
            await asyncio.create_task(stores.registry.deployment.maintenance())
    assert not await stores.registry.deployment.maintenance()
    await stores.close()


async def test_many_tasks_share_few_connections_and_each_gets_its_turn(postgresql: Place) -> None:
    """Reads and batches of 64 tasks on two connections; nobody is forgotten, also after some were cancelled."""
    stores = await open_postgresql(str(postgresql.address), SecretCipher(KEY), lambda: NOW, pool_size=2)

    async def ask(number: int) -> bool:
        assert await stores.registry.clients.get("rp") is None
        async with stores.transient.batch(NOW) as batch:
            return await batch.add("jti", number.to_bytes(32), 60)

    for first in (0, 1000):
        asked = [asyncio.create_task(ask(first + number)) for number in range(64)]
        await asyncio.sleep(0.01)
        for task in asked[::7]:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
    assert all(await asyncio.gather(*(ask(2000 + number) for number in range(64))))
    await stores.close()


async def test_a_statement_that_takes_too_long_is_refused(postgresql: Place) -> None:
    database = await open_database(str(postgresql.address), name="corpid", pool_size=1, seconds=1)
    slow, quick = (Statement(sa.select(sa.func.pg_sleep(seconds))) for seconds in (6, 0))
    with pytest.raises(StoreUnavailable, match="statement timeout"):
        await database.rows(slow, {})
    assert len(await database.rows(quick, {})) == 1
    await database.close()


async def test_a_cancelled_statement_leaves_its_connection_usable_and_its_transaction_undone(postgresql: Place) -> None:
    stores = await open_postgresql(str(postgresql.address), SecretCipher(KEY), lambda: NOW, pool_size=1)
    slow = Statement(sa.select(sa.func.pg_sleep(4)))

    async def spending() -> None:
        async with stores.transient.batch(NOW) as batch:
            await batch.add("jti", b"k", 60)
            await stores.database.rows(slow, {})

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await spending()
    async with stores.transient.batch(NOW) as batch:
        assert await batch.add("jti", b"k", 60)
    await stores.close()


async def test_of_two_transactions_that_wait_for_each_other_one_is_refused(postgresql: Place) -> None:
    async with postgresql.opened() as stores:
        both = asyncio.Barrier(2)

        async def cross(first: bytes, second: bytes) -> None:
            async with stores.transient.batch(NOW) as batch:
                await batch.count("n", first, 60)
                await both.wait()
                await batch.count("n", second, 60)

        outcomes = await asyncio.gather(cross(b"a", b"b"), cross(b"b", b"a"), return_exceptions=True)
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType", "StoreUnavailable"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("23503", MissingReference),
        ("23505", Conflict),
        ("25006", StoreUnavailable),
        ("40001", StoreUnavailable),
        ("40P01", StoreUnavailable),
        ("53100", StoreUnavailable),
        ("53300", StoreUnavailable),
        ("57014", StoreUnavailable),
        ("57P01", StoreUnavailable),
        ("57P03", StoreUnavailable),
        ("08006", StoreUnavailable),
        ("28P01", StoreUnavailable),
        ("42601", asyncpg.PostgresSyntaxError),
        ("42P01", asyncpg.UndefinedTableError),
    ],
)
def test_what_the_server_refuses_is_told_in_our_words(code: str, expected: type[Exception]) -> None:
    """A constraint's refusal, an engine that is away, or a mistake of ours, which stays what it is."""
    error = asyncpg.PostgresError.new({"C": code, "M": "told so", "S": "ERROR"})
    assert type(translate_error(error, "postgresql://db/corpid")) is expected


def test_a_user_name_that_is_taken_is_told_by_its_constraint() -> None:
    """D51."""
    error = asyncpg.PostgresError.new({"C": "23505", "M": "told so", "S": "ERROR", "n": "uq_users_user_name_key"})
    assert isinstance(translate_error(error, ""), NameTaken)


def test_an_address_is_shown_without_its_secrets_and_may_say_how_many_statements_are_kept() -> None:
    """For pgbouncer; every other option is the driver's."""
    found = parse_address("postgresql://u:p%40ss@db.example:5432/corpid?statement_cache_size=0&sslmode=verify-full")
    assert found.shown == "postgresql://db.example:5432/corpid"
    assert found.cached_statements == 0
    assert found.dsn == "postgresql://u:p%40ss@db.example:5432/corpid?sslmode=verify-full"
