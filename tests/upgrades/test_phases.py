"""Expand, fill, contract: what a version does to a database, and on which it runs (docs/decisions/0009)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from corpid.stores.sql import migration, postgresql_schema, schema
from corpid.stores.sql.migration import (
    OLDEST,
    PHASES,
    ContractFirst,
    DatabaseBusy,
    Migration,
    MigrationStopped,
    SchemaNewer,
    SchemaOlder,
    choose_outstanding,
    find_serves_since,
    read_steps,
)
from corpid.stores.sql.sqlite import hold_in_use
from tests.upgrades.databases import StopAfter

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tests.adapters.databases import Place

    Within = Callable[[], AbstractContextManager[None]]

pytestmark = pytest.mark.full

PEOPLE = 2500


def peopled(place: Place) -> None:
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {PEOPLE})"
    schema.migrate(place.address)
    place.sql(
        f"{numbers} INSERT INTO users (user_id, user_name, user_name_key, name, email, language, identity_number, "
        "identity_country, account_type, enabled) SELECT 'u' || i, 'u' || i, 'u' || i, 'NAME', '', 'en', '', '', '', "
        "TRUE FROM n"
    )


def number(place: Place, question: str) -> int:
    [(found,)] = place.sql(question)
    return int(found)


def revision(place: Place) -> str:
    [(found,)] = place.sql("SELECT version_num FROM alembic_version")
    return str(found)


FILLED = "SELECT count(*) FROM users WHERE sort_name = 'name'"


def test_every_migration_says_its_phase_and_what_it_locks() -> None:
    for each in read_steps():
        assert each.phase in PHASES, each.revision
        assert each.locks, each.revision
        assert each.title, each.revision
        assert (each.fill is not None) == (each.phase == migration.FILL), each.revision
        assert (each.upgrade is not None) == (each.phase != migration.FILL), each.revision


def test_the_version_before_goes_on_until_something_is_taken_away(place: Place, later: Within) -> None:
    peopled(place)
    with later():
        schema.migrate(place.address)
        assert revision(place) == "9003"
        assert number(place, FILLED) == PEOPLE
    schema.check(place.address)
    schema.migrate(place.address)
    assert revision(place) == "9003", "the version before undoes nothing"
    with later():
        schema.migrate(place.address, through=migration.CONTRACT)
    for use in (schema.check, schema.migrate):
        with pytest.raises(SchemaNewer, match=r"newer CorpID \(its schema is '9004'\).*: run that version, or restore"):
            use(place.address)


def test_a_version_waits_for_what_it_cannot_do_without_and_for_nothing_else(place: Place, later: Within) -> None:
    schema.migrate(place.address)
    with later():
        with pytest.raises(SchemaOlder, match="run `corpid migrate`"):
            schema.check(place.address)
        schema.migrate(place.address, through=migration.EXPAND)
        assert revision(place) == "9002"
        schema.check(place.address)
        assert [step.phase for step in schema.plan(place.address).now] == ["fill"]


def test_a_plan_says_what_is_to_come_and_changes_nothing(place: Place, later: Within) -> None:
    """What will happen, and about how long."""
    peopled(place)
    with later():
        plan = schema.plan(place.address)
    assert [(step.revision, step.phase) for step in plan.now] == [
        ("9001", "expand"),
        ("9002", "expand"),
        ("9003", "fill"),
    ]
    assert [(step.revision, step.phase) for step in plan.later] == [("9004", "contract")]
    assert (plan.now[2].rows, plan.now[2].seconds) == (PEOPLE, 1)
    assert plan.now[0].locks == "the table users, for a moment"
    assert revision(place) == schema.find_head()


def test_a_fill_that_was_stopped_goes_on_where_it_was(place: Place, later: Within) -> None:
    peopled(place)
    with later():
        schema.migrate(place.address, through=migration.EXPAND)
        with pytest.raises(MigrationStopped, match=f"stopped after 2,000 of about {PEOPLE:,} rows of users"):
            schema.migrate(place.address, stop=StopAfter(2))
        assert (revision(place), number(place, FILLED)) == ("9002", 2000)
        assert schema.plan(place.address).now[0].rows == PEOPLE - 2000
        said: list[str] = []
        schema.migrate(place.address, report=said.append)
        assert said[0] == "9003: 500 rows of users walked"
        assert (revision(place), number(place, FILLED)) == ("9003", PEOPLE)


def test_rows_that_the_version_before_wrote_after_a_fill_are_filled_before_anything_is_taken_away(
    place: Place, later: Within
) -> None:
    peopled(place)
    with later():
        schema.migrate(place.address)
        place.sql("UPDATE users SET sort_name = NULL WHERE user_id = 'u7'")
        schema.migrate(place.address, through=migration.CONTRACT)
        assert number(place, FILLED) == PEOPLE
        assert number(place, "SELECT count(*) FROM deployment WHERE name = 'fill_9003'") == 0


async def test_nothing_is_taken_away_while_a_server_of_the_version_before_runs(place: Place, later: Within) -> None:
    schema.migrate(place.address)

    async def refused(_: object) -> None:
        with later(), pytest.raises(DatabaseBusy, match="`corpid migrate --contract` again"):
            await asyncio.to_thread(schema.migrate, place.address, through=migration.CONTRACT)

    if isinstance(place.address, str):
        async with place.opened() as _:
            await refused(_)
    else:
        with hold_in_use(place.address):
            async with place.opened() as _:
                await refused(_)
    assert revision(place) == "9003"
    with later():
        schema.migrate(place.address, through=migration.CONTRACT)


def test_an_update_that_passes_over_a_version_says_to_stop_every_server() -> None:
    def step(name: str, phase: str) -> Migration:
        return Migration(revision=name, title=name, phase=phase, locks="", upgrade=None, fill=None, concurrently=False)

    every = [step("1", "expand"), step("2", "expand"), step("3", "contract"), step("4", "expand"), step("5", "fill")]
    with pytest.raises(ContractFirst, match=r"the migration 3 comes first.*Stop every server"):
        choose_outstanding(every, "2", through=migration.FILL)
    assert [each.revision for each in choose_outstanding(every, "2", through=migration.CONTRACT)] == ["3", "4", "5"]
    assert [each.revision for each in choose_outstanding(every, "3", through=migration.EXPAND)] == ["4"]
    assert [find_serves_since(every, each.revision) for each in every] == [OLDEST, OLDEST, "3", "3", "3"]


def test_a_statement_gives_way_to_those_who_use_a_table_and_says_so_in_the_end(
    postgresql: Place, later: Within, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits behind a migration for longer than a request may take."""
    monkeypatch.setattr(postgresql_schema, "_ATTEMPTS", 2)
    assert isinstance(postgresql.address, str)
    with postgresql_schema.open_target(postgresql.address) as holding, later():

        def hold(connection: sa.Connection) -> None:
            connection.execute(sa.text("LOCK TABLE users IN ACCESS SHARE MODE"))
            with pytest.raises(DatabaseBusy, match=r"others have used a table .* then run `corpid migrate` again"):
                schema.migrate(postgresql.address)

        holding.read(hold)
        assert revision(postgresql) != "9001"
        schema.migrate(postgresql.address)
    assert revision(postgresql) == "9003"
