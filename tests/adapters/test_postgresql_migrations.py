"""The schema on PostgreSQL: made, checked, refused (D43; `corpid migrate`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid.stores.sql import schema
from corpid.stores.sql.migration import DatabaseForgetful, DatabaseUnreachable, SchemaNewer, SchemaOlder
from tests import engines
from tests.adapters.databases import Place
from tests.adapters.opened import EVENT, race
from tests.upgrades.databases import make_oldest, read_shape

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.full

STARTER = """
go()
async def main():
    stores = await opened()
    print(await stores.registry.deployment.maintenance())
    await stores.close()
asyncio.run(main())
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
    before = read_shape(empty)
    schema.migrate(url(empty))
    assert read_shape(empty) == before


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
    before = read_shape(postgresql)
    for use in (schema.check, schema.migrate):
        with pytest.raises(SchemaNewer, match=r"was migrated by a newer CorpID \(its schema is '9999'\)"):
            use(url(postgresql))
    assert read_shape(postgresql) == before


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
    """One transaction: a table in the way of a new one undoes what was made before it."""
    empty.sql("CREATE TABLE transient (x integer)")
    with pytest.raises(DatabaseUnreachable, match='"transient" already exists'):
        schema.migrate(url(empty))
    assert empty.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == [("transient",)]


def test_an_interrupted_building_of_indexes_goes_on_where_it_was(empty: Place) -> None:
    """docs/decisions/0009: what is half built is built again, and what is whole stays, as servers may depend on it."""
    place = make_oldest(url(empty))
    index = "ix_assignments_holders"
    found = f"SELECT oid FROM pg_class WHERE relname = '{index}'"
    place.sql(f"CREATE INDEX {index} ON assignments (entity_id)")
    place.sql(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{index}'::regclass")
    [half] = place.sql(found)
    schema.migrate(url(place))
    [whole] = place.sql(found)
    assert whole != half
    assert "(entity_id, service_id, user_id)" in place.sql(f"SELECT pg_get_indexdef('{index}'::regclass)")[0][0]
    searched, ends = {"service": "services", "client": "clients"}, ("insert", "update")
    for later in (
        "DROP TABLE jobs",
        "ALTER TABLE memberships DROP COLUMN person_full_name CASCADE",
        *(
            f"DROP FUNCTION {of}_{on}_{end} CASCADE"
            for of in searched.values()
            for on in ("words", "outdated")
            for end in ends
        ),
        *(f"DROP TABLE {record}_words" for record in searched),
        "ALTER TABLE change_requests DROP COLUMN comments",
        *(f"ALTER TABLE links DROP COLUMN {name}" for name in ("entity_id", "asked_by", "sent_to")),
        *(f"ALTER TABLE {of} DROP COLUMN words" for of in searched.values()),
    ):
        place.sql(later)  # that a later migration makes
    place.sql("UPDATE alembic_version SET version_num = '0041'")
    schema.migrate(url(place))
    assert place.sql(found) == [whole]
    assert place.sql("SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid") == []


@pytest.mark.parametrize("statement", ["UPDATE audit SET actor = 'x'", "DELETE FROM audit", "TRUNCATE audit"])
async def test_the_audit_table_refuses_changes_and_removals(postgresql: Place, statement: str) -> None:
    """docs/audit.md: the table is append-only."""
    async with postgresql.opened() as stores:
        await stores.registry.audit.write(EVENT, now=1)
    with pytest.raises(AssertionError, match="append-only"):
        postgresql.sql(statement)
