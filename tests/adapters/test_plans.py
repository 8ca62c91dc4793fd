"""Costs stay flat from a thousand to a million users (DESIGN "Speed"): the plans of both engines on filled tables.

The statements are all that the adapters prepare, and the tables all that the schema has: one that is new is looked
at without being named here. What a real sign-in asks is looked at once more by `make bench-scale`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from benchmarks import plans
from corpid.stores.sql import schema
from corpid.stores.sql.tables import METADATA
from tests import engines
from tests.adapters.databases import Place
from tests.adapters.prepared_statements import make_the_rest, noted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid.stores.sql.open import SqlStores

ROWS = 20_000
SHARED = 4
"""rows with the same value in the first column of a key of several"""
NO_TABLE = "CONSTANT ROW"


class Filled:
    """A place whose every table has thousands of rows, so that reading a whole one costs more than an index."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.is_sqlite = not isinstance(place.address, str)
        if self.is_sqlite:
            for insert in self._filling():
                place.sql(insert)
        else:
            place.sql("; ".join(("SET session_replication_role = replica", *self._filling(), "ANALYZE")))
        with noted() as prepared:
            place.run(self._prepare)
        self.statements = {made.text for made in prepared} - self.listed

    async def _prepare(self, stores: SqlStores) -> None:
        make_the_rest(stores)
        registry = stores.registry
        self.listed = {each._all.text for each in (registry.clients, registry.api_clients, registry.usage)}
        """commands and the loading of keys ask for everything"""
        self.listed |= {known.first_page.text for known in registry.directory._kinds.values()}

    def _filling(self) -> Iterator[str]:
        for table in METADATA.sorted_tables:
            values = ", ".join(_value(column, "BLOB" if self.is_sqlite else "BYTEA") for column in table.columns)
            names = ", ".join(f'"{column.name}"' for column in table.columns)
            yield (
                f"INSERT INTO {table.name} ({names}) WITH RECURSIVE rows(n) AS "
                f"(SELECT 1 UNION ALL SELECT n + 1 FROM rows WHERE n < {ROWS}) SELECT {values} FROM rows"
            )

    def plan(self, statement: str) -> list[str]:
        """The steps of the plan that serves every value."""
        if self.is_sqlite:
            rows = self.place.sql(f"EXPLAIN QUERY PLAN {statement}", (None,) * statement.count("?"))
            return [str(row[3]) for row in rows]
        return [str(step).strip() for (step,) in self.place.sql(plans.explaining(statement))]

    def reads_whole(self, steps: list[str]) -> bool:
        """Whether a plan reads a table that grows from beginning to end. A deployment has a handful of keys."""
        if self.is_sqlite:
            scans = [step for step in steps if step.startswith("SCAN ") and NO_TABLE not in step]
            return any(not step.startswith("SCAN keys") for step in scans)
        return bool(plans.read_whole("\n".join(steps)) - {"keys"})


def _value(column: sa.Column[object], octets: str) -> str:
    """What row n has in this column. The first column of a key of several repeats, as a person's identifier does."""
    if isinstance(column.type, sa.Boolean):
        return "true"
    if isinstance(column.type, sa.Integer):
        return "n"
    table = column.table
    first_of_several = len(table.primary_key) > 1 and column is next(iter(table.primary_key))
    number = f"n / {SHARED}" if first_of_several else "n"
    letter = "a" if table.name.startswith("api_client") else "v"  # no identifier is of a client of both kinds
    return f"CAST('{letter}' || ({number}) AS {octets if isinstance(column.type, sa.LargeBinary) else 'TEXT'})"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    if request.param == "sqlite":
        path = tmp_path_factory.mktemp("filled") / "corpid.db"
        schema.migrate(path)
        yield Filled(Place(path))
        return
    with engines.postgresql(migrated=True) as dsn:
        yield Filled(Place(dsn))


def test_no_statement_of_a_request_reads_a_whole_table(filled: Filled) -> None:
    found = {text: filled.plan(text) for text in filled.statements}
    assert {text: steps for text, steps in found.items() if filled.reads_whole(steps)} == {}
    assert len(found) > 50


def test_what_reads_a_whole_table_is_found(filled: Filled) -> None:
    """The test above would see a statement without an index."""
    assert filled.reads_whole(filled.plan("SELECT user_id FROM users WHERE name = user_name"))


def test_the_first_keystrokes_of_a_search_read_the_persons_memberships_only(filled: Filled) -> None:
    """D50: with thousands of entities a person costs what they hold, and no one else's."""
    asked = [text for text in filled.statements if "FROM memberships" in text and "users" not in text]
    looks = [
        text
        for text in asked
        if text.count("memberships.user_id = ") == 1 and "memberships.entity_id = " not in text.partition("WHERE")[2]
    ]
    for text in looks:
        assert any(
            step.startswith("SEARCH memberships USING PRIMARY KEY (user_id=?)") or "pk_memberships" in step
            for step in filled.plan(text)
        ), text
    assert len(looks) >= 4


def test_entities_are_found_by_the_beginning_of_their_name_in_an_index(filled: Filled) -> None:
    """Issue 13 (7): a stretch of it, in its order, whatever the size of the directory."""
    [look] = [text for text in filled.statements if text.count("substr(search_text") > 1]
    steps = "\n".join(filled.plan(look))
    assert "ix_entities_name" in steps, steps
    assert "SORT" not in steps.upper().replace("TEMP B-TREE FOR ORDER BY", "SORT"), steps


def test_a_list_of_an_entitys_rows_reads_the_rows_of_its_members_only(filled: Filled) -> None:
    """A service may have a million rows, of which the entity has five."""
    joined = ("FROM memberships JOIN assignments", "FROM memberships JOIN third_party_assignments")
    looks = [text for text in filled.statements if any(each in text for each in joined)]
    for text in looks:
        steps = "\n".join(filled.plan(text))
        assert "ix_memberships_entity_id" in steps, (text, steps)
        assert "assignments_service_id" not in steps, (text, steps)
    assert len(looks) >= 6


def test_no_removal_reads_a_whole_table_for_what_refers_to_it(filled: Filled) -> None:
    """Every foreign key is the start of an index, so that removing one entity does not read them all."""
    for table in METADATA.sorted_tables:
        for key in table.foreign_key_constraints:
            names = list(key.column_keys)
            marks = ["?" if filled.is_sqlite else f"${number}" for number in range(1, len(names) + 1)]
            where = " AND ".join(f"{name} = {mark}" for name, mark in zip(names, marks, strict=True))
            steps = filled.plan(f"DELETE FROM {table.name} WHERE {where}")
            assert not filled.reads_whole(steps), (table.name, steps)


def test_a_sweep_reads_a_stretch_and_no_more(filled: Filled) -> None:
    """Expired rows never cost a request, nor a sweep the whole table."""

    async def sweep(stores: SqlStores) -> None:
        removed = 0
        while True:
            removed += await stores.transient.sweep(now=ROWS)
            if stores.transient._swept_up_to == ("", b""):
                break
        assert removed == ROWS

    filled.place.run(sweep)
