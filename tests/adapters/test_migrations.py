"""The schema: made, checked, refused (D43; `corpid migrate`)."""

from __future__ import annotations

import re
import sqlite3
import threading
from io import StringIO
from pathlib import Path

import pytest
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext

from corpid.stores.sql import migrations, schema
from corpid.stores.sql.migration import (
    OLDEST,
    DatabaseUnreachable,
    Migration,
    SchemaNewer,
    SchemaOlder,
    is_last,
    read_steps,
)
from corpid.stores.sql.sqlite import SqliteTarget
from tests.adapters.opened import EVENT, race, sqlite

STARTER = """
go()
async def main():
    stores = await opened()
    print(await stores.registry.deployment.maintenance())
    await stores.close()
asyncio.run(main())
"""


def changed(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path / "corpid.db", isolation_level=None)
    connection.execute(statement)
    connection.close()


def schema_of(path: Path) -> list[tuple[str]]:
    connection = sqlite3.connect(path / "corpid.db")
    rows = connection.execute("SELECT sql FROM sqlite_schema ORDER BY name").fetchall()
    connection.close()
    return rows


def test_a_fresh_database_passes_the_check_and_a_second_migration_changes_nothing(tmp_path: Path) -> None:
    schema.migrate(tmp_path / "corpid.db")
    schema.check(tmp_path / "corpid.db")
    before = schema_of(tmp_path)
    schema.migrate(tmp_path / "corpid.db")
    assert schema_of(tmp_path) == before


def sql_of(step: Migration) -> str:
    """What a migration sends to PostgreSQL; nothing of one that only builds indexes beside the writers."""
    sent = StringIO()
    context = MigrationContext.configure(dialect_name="postgresql", opts={"as_sql": True, "output_buffer": sent})
    if step.upgrade is not None and not step.concurrently:
        with context.begin_transaction():
            step.upgrade(Operations(context))
    return sent.getvalue()


def test_migrations_are_numbered_without_gaps() -> None:
    """So a database's revision and the number of files say whether anything is to be done."""
    numbers = [step.revision for step in read_steps()]
    assert numbers == [f"{int(OLDEST) + number:04}" for number in range(1, len(numbers) + 1)]
    assert [each for each in (OLDEST, *numbers, None, "") if is_last(each)] == numbers[-1:]


def test_a_migration_reads_no_tables_and_no_records_since_these_change_after_it() -> None:
    """stores/sql/migrations: a fill would look for the columns of later fields, which are not there yet."""
    files = [*Path(migrations.__file__).parent.rglob("*.py")]
    assert len(files) > len(read_steps())
    imported = re.compile(r"^(?:from|import) .*\b(?:tables|records)\b", re.MULTILINE)
    assert [each for each in files if imported.search(each.read_text(encoding="utf-8"))] == []


def test_a_migration_that_adds_a_column_says_that_it_keeps_readers_out_too() -> None:
    """docs/decisions/0009: what a step locks is said before; PostgreSQL takes ACCESS EXCLUSIVE for a new column."""
    found = 0
    for step in read_steps():
        for table in re.findall(r"ALTER TABLE (\w+) ADD COLUMN", sql_of(step)):
            locked = step.locks.partition(table)[2] or step.locks
            if "against" in locked:
                found += 1
                assert locked.partition("against ")[2].startswith("readers"), (step.revision, table, step.locks)
    assert found > 0


@pytest.mark.full
def test_processes_that_start_at_once_make_one_schema(tmp_path: Path) -> None:
    """The embedded default migrates under one lock."""
    assert race(tmp_path / "corpid.db", STARTER, processes=6) == ["False"] * 6
    schema.check(tmp_path / "corpid.db")


def test_a_database_that_is_up_to_date_is_opened_while_another_process_holds_the_lock(tmp_path: Path) -> None:
    """D43: one statement tells, which waits for nobody."""
    schema.migrate(tmp_path / "corpid.db")
    with SqliteTarget(tmp_path / "corpid.db", create=False).hold_lock(print, threading.Event()):
        for use in (schema.check, schema.migrate):
            use(tmp_path / "corpid.db")


def test_a_newer_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    schema.migrate(tmp_path / "corpid.db")
    changed(tmp_path, "UPDATE alembic_version SET version_num = '9999'")
    changed(tmp_path, "UPDATE deployment SET value = '9999' WHERE name = 'schema_serves_since'")
    before = schema_of(tmp_path)
    for use in (schema.check, schema.migrate):
        with pytest.raises(SchemaNewer, match=r"corpid\.db was migrated by a newer CorpID \(its schema is '9999'\)"):
            use(tmp_path / "corpid.db")
    assert schema_of(tmp_path) == before


def test_a_database_without_its_migration_says_to_run_it(tmp_path: Path) -> None:
    changed(tmp_path, "CREATE TABLE anything (x)")
    with pytest.raises(SchemaOlder, match="run `corpid migrate`"):
        schema.check(tmp_path / "corpid.db")


def test_a_missing_database_is_unreachable_and_not_made_by_the_check(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnreachable, match=r"corpid\.db does not exist: run `corpid migrate` to make it"):
        schema.check(tmp_path / "corpid.db")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_directory_and_a_file_of_another_kind_are_unreachable(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnreachable, match="cannot be written: No such file or directory"):
        schema.migrate(tmp_path / "missing" / "corpid.db")
    (tmp_path / "corpid.db").write_bytes(b"This is not a database. " * 100)
    for use in (schema.check, schema.migrate):
        with pytest.raises(DatabaseUnreachable, match="file is not a database"):
            use(tmp_path / "corpid.db")


def test_a_migration_that_fails_leaves_the_schema_as_it_was(tmp_path: Path) -> None:
    """One transaction: a table in the way of a new one undoes what was made before it."""
    changed(tmp_path, "CREATE TABLE transient (x)")
    before = schema_of(tmp_path)
    with pytest.raises(DatabaseUnreachable, match="transient already exists"):
        schema.migrate(tmp_path / "corpid.db")
    assert schema_of(tmp_path) == before


async def test_the_audit_table_refuses_changes_and_removals(tmp_path: Path) -> None:
    """docs/audit.md: the table is append-only."""
    async with sqlite(tmp_path) as stores:
        await stores.registry.audit.write(EVENT, now=1)
    for statement in ("UPDATE audit SET actor = 'x'", "DELETE FROM audit"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            changed(tmp_path, statement)
