"""pgbouncer as its package configures it, in both modes that it can have (docs/operate.md, "pgbouncer")."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import httpx
import pytest
import sqlalchemy as sa

from corpid.rules.failures import StoreUnavailable
from corpid.stores import data_loss
from corpid.stores.data_loss import RestoreRefused
from corpid.stores.encryption_at_rest import SecretCipher
from corpid.stores.sql import postgresql_schema, schema
from corpid.stores.sql.migration import PoolerRefused
from corpid.stores.sql.open import open_postgresql
from corpid.stores.sql.postgresql import open_database
from corpid.stores.sql.statements import Statement
from tests import engines
from tests.adapters.databases import postgresql_rows
from tests.adapters.opened import EVENT, KEY, NOW
from tests.machine import free_port, key_file
from tests.sign_in.factors import answer_of, at_sign_in, passkey
from tests.sign_in.world import form_of, new_world, post
from tests.tiers import first_or_full
from tests.web.processes import command, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.full

SEALING: Final = b64encode(bytes(32)).decode()
FEW_SESSIONS: Final = "default_pool_size = 3"


@pytest.fixture(scope="module", params=first_or_full(["transaction", "session"]))
def pooler(request: pytest.FixtureRequest) -> Iterator[engines.PgBouncer]:
    sessions = FEW_SESSIONS if request.param == "transaction" else "default_pool_size = 40"
    with engines.PgBouncer(engines.postgresql_server(), request.param, sessions) as running:
        yield running


@pytest.fixture
def direct() -> Iterator[str]:
    """The address of a migrated database at the server itself."""
    with engines.postgresql(migrated=True) as dsn:
        yield dsn


@pytest.fixture
def pooled(pooler: engines.PgBouncer, direct: str) -> str:
    """The address of the same database through the pooler."""
    return pooler.dsn(name_of(direct))


def end_sessions(direct: str) -> None:
    """End the pooler's sessions of a database; it opens others."""
    postgresql_rows(
        direct,
        "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )


def name_of(dsn: str) -> str:
    return dsn.rpartition("/")[2]


async def test_more_tasks_than_sessions_lose_nothing_and_get_their_own_answers(
    pooler: engines.PgBouncer, pooled: str
) -> None:
    """No statement meets another's, also of a second process; a session of one's own may prepare them."""

    async def spend(number: int) -> bool:
        assert await stores.registry.clients.get(f"rp-{number}") is None
        async with stores.transient.batch(NOW) as batch:
            assert await batch.count("all", b"k", 60)
            return await batch.add("jti", number.to_bytes(32), 60)

    prepared = "?statement_cache_size=100" if pooler.pool_mode == "session" else ""
    for process, option in enumerate(("", prepared)):
        stores = await open_postgresql(pooled + option, SecretCipher(KEY), lambda: NOW, pool_size=8)
        assert all(await asyncio.gather(*(spend(1000 * process + number) for number in range(64))))
        await stores.close()
    assert postgresql_rows(pooled, "SELECT count FROM transient WHERE kind = 'all'") == [("128",)]


async def test_a_person_signs_in(pooled: str) -> None:
    async with new_world(database_url=pooled, key_encryption_key=SEALING) as made:
        key, browser = await passkey(made, count=None), await at_sign_in(made)
        fields = {**form_of(browser, "passkey"), "passkey": answer_of(made, browser, key)}
        assert (await post(browser, "passkey", fields)).status_code == 303
        assert [entry.outcome for entry in await made.audit("sign_in.passkey")] == ["ok"]


def test_a_server_starts_and_is_ready(pooled: str, tmp_path: Path) -> None:
    options = {"database_url": pooled, "key_encryption_key_file": key_file(tmp_path / "sealing.key")}
    with serving(tmp_path, workers="2", migrate_on_start="true", **options) as running:
        assert httpx.get(f"{running.base_url}/readyz", trust_env=False).json()["status"] == "ready"


async def test_a_transaction_sets_its_own_time_limit_and_leaves_none_behind(pooled: str) -> None:
    """What a session kept would be the next client's, such as pg_dump's."""
    database = await open_database(pooled, name="corpid", pool_size=1, seconds=1)
    slow, limit = Statement(sa.select(sa.func.pg_sleep(3))), Statement(sa.text("SHOW statement_timeout"))

    async def wait() -> None:
        async with database.transaction():
            await database.rows(slow, {})

    with pytest.raises(StoreUnavailable, match="statement timeout"):
        await wait()
    assert await database.row(limit, {}) == ("0",)
    await database.close()
    assert postgresql_rows(pooled, "SHOW statement_timeout") == [("0",)]


async def test_a_statement_alone_has_the_limit_of_its_role(pooled: str, direct: str) -> None:
    postgresql_rows(direct, f"ALTER DATABASE {name_of(direct)} SET statement_timeout = '500ms'")
    database = await open_database(pooled, name="corpid", pool_size=1)
    with pytest.raises(StoreUnavailable, match="statement timeout"):
        await database.rows(Statement(sa.select(sa.func.pg_sleep(3))), {})
    await database.close()


def test_the_schema_is_changed_at_the_server_itself(pooler: engines.PgBouncer) -> None:
    """Sessions that others share keep no lock_timeout, and hide which servers run (docs/decisions/0009)."""
    with engines.postgresql() as direct:
        pooled = pooler.dsn(name_of(direct))
        assert schema.plan(pooled).now
        with pytest.raises(PoolerRefused, match="CORPID_DATABASE_URL=postgresql://"):
            schema.migrate(pooled)
        assert postgresql_rows(direct, "SELECT count(*) FROM pg_class WHERE relname = 'users'") == [("0",)]
        schema.migrate(direct)
        schema.check(pooled)
        schema.migrate(pooled)


async def test_sessions_end_after_a_restore_at_the_server_itself(pooled: str, direct: str) -> None:
    """A pooler shows its own connections, and no server's."""
    stores = await open_postgresql(pooled, SecretCipher(KEY), lambda: NOW, accept_other=True)
    after_restore = partial(data_loss.after_restore, stores.database, stores.transient, stores.registry.audit)
    with pytest.raises(RestoreRefused, match="a pooler answers at database_url"):
        await after_restore(EVENT, now=NOW)
    await stores.close()
    assert postgresql_rows(direct, "SELECT count(*) FROM deployment WHERE name = 'restored_at'") == [("0",)]


def test_the_doctor_says_that_no_time_limit_is_in_force(pooled: str, direct: str, tmp_path: Path) -> None:
    options = {
        "database_url": pooled,
        "key_encryption_key_file": key_file(tmp_path / "sealing.key"),
        "port": str(free_port()),
    }

    def finding(**chosen: str) -> Any:
        found = json.loads(command(tmp_path, "doctor", "--json", **chosen).stdout)["findings"]
        return {each["about"]: each for each in found}.get("pooler", {})

    before = finding(**options)
    assert (before["verdict"], "ALTER ROLE corpid SET statement_timeout" in before["change"]) == ("warning", True)
    postgresql_rows(direct, f"ALTER DATABASE {name_of(direct)} SET statement_timeout = '5s'")
    end_sessions(direct)
    assert finding(**options)["verdict"] == "ok"
    assert not finding(**{**options, "database_url": direct})


async def test_prepared_statements_that_a_pooler_mixes_up_are_explained(direct: str) -> None:
    """The address asks for them, and this pgbouncer does not know them."""
    with engines.PgBouncer(engines.postgresql_server(), "transaction", FEW_SESSIONS) as pooler:
        address = f"{pooler.dsn(name_of(direct))}?statement_cache_size=100"
        database = await open_database(address, name="corpid", pool_size=1)
        one = Statement(sa.select(sa.literal_column("1")))
        assert await database.row(one, {}) == (1,)
        end_sessions(direct)
        with pytest.raises(StoreUnavailable, match="max_prepared_statements of pgbouncer"):
            await database.row(one, {})
        await database.close()


def test_a_migration_has_no_time_limit_of_its_role(direct: str) -> None:
    """Nor has looking at a large table, whichever way the role's servers are limited."""
    postgresql_rows(direct, f"ALTER DATABASE {name_of(direct)} SET statement_timeout = '100ms'")

    def slow(connection: sa.Connection) -> None:
        connection.execute(sa.text("SELECT pg_sleep(0.3)"))

    with postgresql_schema.open_target(direct) as place:
        for way in (place.read, place.transact, place.run_outside_transaction):
            way(slow)
