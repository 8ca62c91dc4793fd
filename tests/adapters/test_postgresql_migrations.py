"""The schema on PostgreSQL: made, checked, refused (D43; `corpid migrate`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from corpid.stores.sql import postgresql_schema, schema
from corpid.stores.sql.columns import METADATA
from corpid.stores.sql.migration import DatabaseForgetful, DatabaseUnreachable, SchemaNewer, SchemaOlder
from tests import engines
from tests.adapters.databases import Place
from tests.adapters.opened import EVENT, race

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy as sa

pytestmark = pytest.mark.full

STARTER = """
go()
async def main():
    stores = await opened()
    print(await stores.registry.deployment.maintenance())
    await stores.close()
asyncio.run(main())
"""

SHAPE = """
SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace AND conrelid <> 'alembic_version'::regclass
UNION SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version'
UNION SELECT table_name || ' ' || column_name || ' ' || data_type || ' ' || is_nullable || ' ' || COALESCE(collation_name, '')
    || ' ' || COALESCE(column_default, '')
    FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'
ORDER BY 1
"""


@pytest.fixture
def empty() -> Iterator[Place]:
    """A database without a schema."""
    with engines.postgresql() as dsn:
        yield Place(dsn)


def url(place: Place) -> str:
    assert isinstance(place.address, str)
    return place.address


def test_a_fresh_database_passes_the_check_and_a_second_migration_changes_nothing(empty: Place) -> None:
    schema.migrate(url(empty))
    schema.check(url(empty))
    before = empty.sql(SHAPE)
    schema.migrate(url(empty))
    assert empty.sql(SHAPE) == before


def test_the_migrations_make_exactly_the_tables_of_the_code(empty: Place, postgresql: Place) -> None:
    """Columns, order of texts, constraints, cascades and indexes; by Alembic's eyes and by PostgreSQL's."""

    def compare(connection: sa.Connection) -> None:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []

    with postgresql_schema.open_target(url(postgresql)) as migrated:
        migrated.read(compare)
    empty.sql("CREATE TABLE alembic_version (version_num text)")
    with postgresql_schema.open_target(url(empty)) as made:
        made.transact(METADATA.create_all)
    assert postgresql.sql(SHAPE) == empty.sql(SHAPE)


def test_every_text_is_compared_byte_by_byte(postgresql: Place) -> None:
    """A database made for some language sorts as SQLite does, and finds what is written alike only."""
    other = postgresql.sql(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' "
        "AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'"
    )
    assert other == []


def test_processes_that_start_at_once_make_one_schema(empty: Place) -> None:
    """First start of many hosts: they wait for one another under one lock."""
    assert race(url(empty), STARTER, processes=6) == ["False"] * 6
    schema.check(url(empty))


def test_a_database_without_its_migration_says_to_run_it(empty: Place) -> None:
    with pytest.raises(SchemaOlder, match=r"postgresql://127\.0\.0\.1:\d+/\w+ has an older schema .* `corpid migrate`"):
        schema.check(url(empty))


def test_a_newer_database_is_refused_and_left_alone(postgresql: Place) -> None:
    postgresql.sql("UPDATE alembic_version SET version_num = '9999'")
    postgresql.sql("UPDATE deployment SET value = '9999' WHERE name = 'schema_serves_since'")
    before = postgresql.sql(SHAPE)
    for use in (schema.check, schema.migrate):
        with pytest.raises(SchemaNewer, match=r"was migrated by a newer CorpID \(its schema is '9999'\)"):
            use(url(postgresql))
    assert postgresql.sql(SHAPE) == before


def test_a_database_that_cannot_be_reached_is_told_without_its_password(postgresql: Place) -> None:
    missing = url(postgresql).replace("corpid@", "corpid:secret@") + "_missing"
    nobody = "postgresql://corpid:secret@127.0.0.1:1/corpid"
    for address, why in ((missing, "does not exist"), (nobody, "[Cc]onnect")):
        for use in (schema.check, schema.migrate):
            with pytest.raises(DatabaseUnreachable, match=why) as refused:
                use(address)
            assert "secret" not in str(refused.value)


def test_a_server_that_may_forget_what_it_said_was_written_is_refused(postgresql: Place) -> None:
    """docs/reliability.md: a spent thing stays spent."""
    name = url(postgresql).rpartition("/")[2]
    postgresql.sql(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with pytest.raises(DatabaseForgetful, match="synchronous_commit is 'off': set it to 'on'"):
        schema.check(url(postgresql))


def test_a_server_that_writes_nothing_to_its_disk_is_refused() -> None:
    """docs/reliability.md: a spent thing stays spent."""
    with (
        engines.PostgresServer("fsync = off") as server,
        pytest.raises(DatabaseForgetful, match="fsync is 'off': set it to 'on'"),
    ):
        schema.check(server.dsn())


def test_a_migration_that_fails_leaves_the_schema_as_it_was(empty: Place) -> None:
    """One transaction: a table in the way of the first migration undoes what it had made."""
    empty.sql("CREATE TABLE transient (x integer)")
    with pytest.raises(DatabaseUnreachable, match='"transient" already exists'):
        schema.migrate(url(empty))
    assert empty.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == [("transient",)]


LATER_MIGRATIONS: Final = (
    "DROP TABLE consents, email_changes, passkey_offers, deletion_requests, browser_names, client_refusals",
    "DROP TABLE hourly_counts, server_processes, client_clocks, jobs",
    "DROP TABLE notices, access_review_decisions, access_reviews",
    "ALTER TABLE sessions DROP COLUMN browser_key",
    "ALTER TABLE services DROP COLUMN description, DROP COLUMN role_descriptions",
    "ALTER TABLE change_requests DROP COLUMN people",
    "DROP FUNCTION "
    + ", ".join(
        f"{table}_{sort}_{verb}"
        for table in ("users", "entities", "memberships")
        for sort in ("words", "outdated")
        for verb in ("insert", "update")
    )
    + " CASCADE",
    "DROP TABLE user_words, entity_words, member_words, outdated_words",
    *(f"ALTER TABLE {table} DROP COLUMN words" for table in ("users", "entities", "memberships")),
    "ALTER TABLE memberships DROP COLUMN department, DROP COLUMN job_title",
)
"""what they made, taken back: otherwise they would fail"""


def test_an_interrupted_building_of_indexes_goes_on_where_it_was(empty: Place) -> None:
    """docs/decisions/0009: what it finished replaces what it dropped, so servers are never without an index."""
    schema.migrate(url(empty))
    before = empty.sql(SHAPE)
    whole = "SELECT oid::regclass, oid FROM pg_class WHERE relname ~ '^ix_.*assignments_.*_user_id$' ORDER BY 1"
    finished = [each for each in empty.sql(whole) if each[0] != "ix_third_party_assignments_service_id_user_id"]
    assert len(finished) == 4
    for later in LATER_MIGRATIONS:
        empty.sql(later)
    empty.sql("UPDATE alembic_version SET version_num = '0024'")
    last = "ix_third_party_assignments_service_id"
    empty.sql(f"CREATE INDEX {last} ON third_party_assignments (service_id)")
    empty.sql(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{last}_user_id'::regclass")
    schema.migrate(url(empty))
    assert set(finished) <= set(empty.sql(whole))
    assert empty.sql(SHAPE) == before
    assert empty.sql("SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid") == []


@pytest.mark.parametrize("statement", ["UPDATE audit SET actor = 'x'", "DELETE FROM audit", "TRUNCATE audit"])
async def test_the_audit_table_refuses_changes_and_removals(postgresql: Place, statement: str) -> None:
    """docs/audit.md: the table is append-only."""
    async with postgresql.opened() as stores:
        await stores.registry.audit.write(EVENT, now=1)
    with pytest.raises(AssertionError, match="append-only"):
        postgresql.sql(statement)
