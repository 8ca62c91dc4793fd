"""Batches and registry writes in one transaction."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from corpid.rules.oauth.errors import InvalidGrant
from corpid.rules.oauth.refusals import Reason
from corpid.stores.sql.sqlite import JoinedBatches, SqliteDatabase
from tests.adapters.opened import NOW, lmdb_transient, sqlite
from tests.adapters.stored_records import CLIENT_EVENT

if TYPE_CHECKING:
    from pathlib import Path

    from corpid.stores.sql.audit import Audit
    from tests.adapters.databases import Place


async def test_a_registry_write_inside_a_unit_ends_with_the_unit(place: Place) -> None:
    """SECURITY.md: the audit event is written in the transaction of the change."""
    async with place.opened() as stores:

        async def spend(number: int, failure: Exception | None) -> None:
            async with stores.transient.batch(NOW) as batch:
                await batch.add("jti", number.to_bytes(32), 60)
                await stores.registry.audit.write(CLIENT_EVENT, now=NOW)
                if failure:
                    raise failure

        outcomes = await asyncio.gather(
            spend(1, None),
            spend(2, InvalidGrant(Reason.CODE_UNKNOWN, "Spent.")),
            spend(3, RuntimeError("a fault")),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [type(None), InvalidGrant, RuntimeError]
        assert len(await stores.registry.audit.entries()) == 2
        async with stores.transient.batch(NOW) as batch:
            assert [await batch.add("jti", number.to_bytes(32), 60) for number in (1, 2, 3)] == [False, False, True]


async def test_registry_writes_inside_a_unit_of_another_local_store_end_together(tmp_path: Path) -> None:
    """docs/decisions/0032: one transaction for what lasts, begun by the first write; what was spent stays spent."""

    async def scenario(database: SqliteDatabase, audit: Audit, store: JoinedBatches) -> None:
        async def spend(number: int, failure: Exception | None) -> None:
            async with store.batch(NOW) as batch:
                assert await batch.add("jti", number.to_bytes(32), 60)
                for _ in range(2):
                    async with store.batch(NOW):
                        await audit.write(CLIENT_EVENT, now=NOW)
                        await asyncio.sleep(0)
                if failure:
                    raise failure

        outcomes = await asyncio.gather(
            spend(1, None),
            spend(2, InvalidGrant(Reason.CODE_UNKNOWN, "Spent.")),
            spend(3, RuntimeError("a fault")),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [type(None), InvalidGrant, RuntimeError]
        assert len(await audit.entries()) == 4
        async with store.batch(NOW) as batch:
            assert [await batch.add("jti", number.to_bytes(32), 60) for number in (1, 2, 3)] == [False, False, False]
        await audit.write(CLIENT_EVENT, now=NOW)
        assert len(await audit.entries()) == 5

    async with sqlite(tmp_path) as stores, lmdb_transient(tmp_path) as store:
        assert isinstance(stores.database, SqliteDatabase)
        await scenario(stores.database, stores.registry.audit, JoinedBatches(store, stores.database))
