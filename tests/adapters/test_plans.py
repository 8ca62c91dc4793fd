"""Costs stay flat from a thousand to a million users (docs/costs.md): the plans of both engines on filled tables.

The statements are all that the stores have, and the tables all that the schema has: one that is new is looked
at without being named here. What a real sign-in asks is looked at once more by `make bench-scale`.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, get_args

import asyncpg
import pytest
import sqlalchemy as sa

from benchmarks import plans
from corpid.rules.directory.lists import RECORD_LISTS, ListQuery
from corpid.rules.directory.memberships import Member, SortedBy
from corpid.rules.directory.records import Assignment, ChangeRequest, Entity, ThirdPartyAssignment, User
from corpid.stores.sql import clients, directory, lists, mappers, members, notices, schema
from corpid.stores.sql.columns import METADATA
from corpid.stores.sql.lists import _WORDS, Shape, bind_place, find_shape
from tests import engines
from tests.adapters.databases import Place
from tests.adapters.statements import FILTERS, LISTS, ROLES, SEARCHES, every_statement, find_counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from corpid.stores.sql.open import SqlStores
    from corpid.stores.sql.statements import Statement

pytestmark = pytest.mark.full

ROWS = 20_000
SHARED = 4
"""rows with the same value in the first column of a key of several"""
OTHERS = 1000
"""values in the other columns of such a key"""
NO_TABLE = ("CONSTANT ROW", "VALUES CLAUSE")


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
        place.run(self._prepare)
        self._plans = self._explain_file() if self.is_sqlite else asyncio.run(self._explain())

    async def _prepare(self, stores: SqlStores) -> None:
        self._dialect = stores.database.dialect
        self.filtered = {
            shape[0]: [
                self.text(members.count_members(shape)),
                *(self.text(members.select_page(shape, by, False)) for by in get_args(SortedBy)),
            ]
            for shape in FILTERS
            if len(shape) == 1
        }
        self.pages = {each: lists.select_page(each) for each in LISTS if not each.no_operators}
        self.searches = {
            each: (self.text(lists.select_page(each)), self.text(lists.count_records(find_counted(each))))
            for each in SEARCHES
            if each.words
        }
        self.ending = [self.text(directory.count_totals)]
        self.roles = {
            each: (
                self.text(members.select_part_end(each.order, each.backwards)),
                self.text(members.select_roles(each)),
            )
            for each in ROLES
        }
        self.ending += [
            self.text(notices.select_ending_on(Assignment)), self.text(notices.count_ending_on(Assignment)),
        ]  # fmt: skip
        self.by_last_day = [self.text(notices.select_ending(kind)) for kind in (Assignment, ThirdPartyAssignment)]
        self.reviewed = {
            "pk_access_review_decisions": [
                self.text(notices.ALL_DECISIONS),
                self.text(notices.select_undecided),
                self.text(notices.count_kept),
            ],
            "pk_access_reviews": [self.text(notices.select_administered)],
            "ix_access_reviews_remind_at": [self.text(notices.DUE_REVIEWS)],
        }
        listed: list[Statement] = [
            clients.Clients._statements.all,
            clients.ApiClients._statements.all,
            clients._LIST_USES,
        ]
        listed += [known.first_page for known in mappers.KINDS.values()]
        """commands and the loading of keys ask for everything"""
        every = every_statement(writes_in_queries=stores.database.writes_in_queries)
        self.statements = {*map(self.text, every)} - {*map(self.text, listed)}

    def text(self, statement: Statement) -> str:
        return statement.compiled(self._dialect)[0]

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
        if statement in self._plans:
            return self._plans[statement]
        if self.is_sqlite:
            return _steps(self.place.sql, statement)
        return [str(step).strip() for (step,) in self.place.sql(plans.explaining(statement))]

    def _explain_file(self) -> dict[str, list[str]]:
        """SQLite's plans of all statements, by one connection."""
        with closing(sqlite3.connect(self.place.address)) as file:
            return {text: _steps(file.execute, text) for text in self.statements}

    async def _explain(self) -> dict[str, list[str]]:
        """PostgreSQL's plans of all statements, by one connection."""
        connection = await asyncpg.connect(str(self.place.address))
        found = {}
        for text in self.statements:
            asked, _, explained = plans.explaining(text).rpartition("; ")
            await connection.execute(asked)
            found[text] = [str(step).strip() for (step,) in await connection.fetch(explained)]
            await connection.execute("DEALLOCATE asked")
        await connection.close()
        return found

    def blocks(self, prepared: Statement, values: dict[str, object]) -> int:
        """The blocks that PostgreSQL looks at for a statement, prepared for every value."""
        text, bind = prepared.compiled(self._dialect)
        given = ", ".join(f"'{value}'" for value in bind(values))
        asked = plans.explaining(text).partition("; EXPLAIN")[0]
        steps = self.place.sql(f"{asked}; EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) EXECUTE asked({given})")
        told = next(str(step) for (step,) in steps if "Buffers: shared" in str(step))
        return sum(map(int, re.findall(r"(?:hit|read)=(\d+)", told)))

    def reads_whole(self, steps: list[str]) -> bool:
        """Whether a plan reads a table that grows from beginning to end.

        A deployment has a handful of keys, operators, serving processes, jobs and databases; rows that are counted up to a limit, and services that were looked up, are no table,
        and of records with outdated words the first ones are read.
        """
        if self.is_sqlite:
            scans = [step for step in steps if step.startswith("SCAN ") and not any(each in step for each in NO_TABLE)]
            return any(
                not step.startswith(
                    (
                        "SCAN keys",
                        "SCAN operators",
                        "SCAN server_processes",
                        "SCAN jobs",
                        "SCAN counted",
                        "SCAN chunk",
                        "SCAN held",
                        "SCAN outdated_words",
                        "SCAN sqlite_sequence",
                    )
                )
                for step in scans
            )
        return bool(
            plans.read_whole("\n".join(steps))
            - {"keys", "operators", "server_processes", "jobs", "outdated_words", "pg_database"}
        )


def _steps(execute: Callable[[str, tuple[None, ...]], Iterable[tuple[Any, ...]]], statement: str) -> list[str]:
    """SQLite's plan of a statement with any values."""
    return [str(row[3]) for row in execute(f"EXPLAIN QUERY PLAN {statement}", (None,) * statement.count("?"))]


def _value(column: sa.Column[object], octets: str) -> str:
    """What row n has in this column. Those of a key of several repeat, as identifiers of people and entities do."""
    if isinstance(column.type, sa.Boolean):
        return "true"
    if column.name == "words":
        return "'{}'"
    if isinstance(column.type, sa.Integer | sa.Double):
        return "n"
    table = column.table
    several = list(table.primary_key) if len(table.primary_key) > 1 else []
    number = f"n / {SHARED}" if several[:1] == [column] else f"n % {OTHERS}" if column in several else "n"
    letter = "a" if table.name.startswith("api_client") else "v"  # no identifier is of a client of both kinds
    return f"CAST('{letter}' || ({number}) AS {octets if isinstance(column.type, sa.LargeBinary) else 'TEXT'})"


def _by_key(kind: type, *given: str, backwards: bool = False) -> Shape:
    return Shape(kind, RECORD_LISTS[kind].orders[0].columns, given, False, backwards)


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    if request.param == "sqlite":
        path = tmp_path_factory.mktemp("filled") / "corpid.db"
        schema.migrate(path)
        yield Filled(Place(path))
        return
    with engines.postgresql(migrated=True) as dsn:
        yield Filled(Place(dsn))


def test_no_statement_of_a_request_reads_a_whole_table(filled: Filled) -> None:
    """Except two searches of operators: of a key among the clients, and of a reference among their few kept refusals."""
    of_operators = "key_sets.jwks LIKE", "client_refusals.request_id ="
    statements = (text for text in filled.statements if not any(each in text for each in of_operators))
    found = {text: filled.plan(text) for text in statements}
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


@pytest.mark.parametrize(
    ("kind", "order", "index"),
    [
        (User, "name", "ix_users_name"),
        (User, "email", "ix_users_email"),
        (Entity, "name", "ix_entities_name"),
        (Entity, "number", "ix_entities_number"),
        (Member, "membership", "ix_memberships_entity_id_membership_id"),
        (Member, "user_name", "ix_memberships_person"),
        (Member, "shown_user_name", "ix_memberships_shown_name"),
        (Member, "shown_email", "ix_memberships_shown_email"),
        (Member, "shown_name", "ix_memberships_shown_full_name"),
    ],
)
def test_a_list_is_read_in_an_index_of_its_order(filled: Filled, kind: type, order: str, index: str) -> None:
    """D83: a stretch of it, whatever the size of the directory, in both directions."""
    listed = RECORD_LISTS[kind]
    looks = [made for shape, made in filled.pages.items() if shape[:2] == (kind, listed.order(order).columns)]
    looks = [made for made in looks if kind is not Entity or ".entity_id = " not in filled.text(made)]
    for made in looks:
        steps = "\n".join(filled.plan(filled.text(made)))
        assert index in steps, steps
        assert "SORT" not in steps.upper().replace("TEMP B-TREE FOR ORDER BY", "SORT"), steps
    assert len(looks) == 2


def test_a_search_reads_the_index_of_words(filled: Filled) -> None:
    """D83: the first word leads, unless a role does, or the list's order in which its records are dense."""
    for shape, (page, counted) in filled.searches.items():
        words = _WORDS[shape.kind][0].name
        for text, leads in ((page, shape.few or shape.by_word), (counted, True)):
            steps = "\n".join(filled.plan(text))
            looks = [
                rf"SEARCH words_{each} USING |(using (pk|ix)_{words}\w*|Bitmap Heap Scan) on {words} words_{each}"
                for each in range(shape.words)
            ]
            assert all(re.search(each, steps) for each in looks), (text, steps)
            first = rf"SEARCH words_0 USING PRIMARY KEY|using pk_{words} on {words} words_0|Scan on pk_{words}"
            assert re.search(first, steps) or not leads, (text, steps)


@pytest.mark.parametrize("order", ["name", "email", "user_name"])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("place", [(), ("v19", "v19")])
async def test_a_page_of_names_reads_no_index_from_its_beginning(
    filled: Filled, order: str, backwards: bool, place: tuple[str, ...]
) -> None:
    """docs/costs.md: a name at the end of the directory costs what one at its beginning does."""
    listed = RECORD_LISTS[User]
    ordered = listed.order(order)
    at = place[: len(ordered.columns)]
    wanted = ListQuery(listed=listed, order=ordered, beginning="v19", place=at, backwards=backwards, limit=5)
    shape, values = find_shape(wanted), bind_place(wanted)
    if filled.is_sqlite:
        shown = "\n".join(filled.plan(filled.text(filled.pages[shape])))
        assert re.search(r"\((<expr>|user_name_key|\(.*\))>\? AND (<expr>|user_name_key|\(.*\))<\?\)", shown), shown
    else:
        assert filled.blocks(filled.pages[shape], values) < 20


@pytest.mark.parametrize("kind", [Assignment, ThirdPartyAssignment])
@pytest.mark.parametrize("given", [("entity_id",), ("service_id",), ("entity_id", "service_id")])
def test_roles_of_an_entity_or_service_are_read_in_their_order(
    filled: Filled, kind: type[Assignment | ThirdPartyAssignment], given: tuple[str, ...]
) -> None:
    """docs/costs.md: an entity may have 20,000 people with roles, a service a million, and either may have none."""
    steps, narrowed_by = filled.plan(filled.text(filled.pages[_by_key(kind, *given)])), given[0]
    shown = "\n".join(steps)
    assert f"{narrowed_by}_user_id" in shown, shown
    assert f"({narrowed_by}=" in shown or f"({narrowed_by} = " in shown, shown
    assert not {"USE TEMP B-TREE FOR ORDER BY", "Sort", "->  Sort"} & {*steps}, shown


def test_an_entitys_roles_that_end_are_counted_and_read_in_an_index_of_the_entity(filled: Filled) -> None:
    """60,000 roles, of which a page shows 50."""
    for text in filled.ending:
        steps = filled.plan(text)
        shown = "\n".join(steps)
        assert "ix_assignments_entity_id_end_date" in shown, shown
        assert not any("TEMP B-TREE" in step or "Sort" in step for step in steps), shown


def test_an_entitys_roles_are_read_in_an_index_of_each_order(filled: Filled) -> None:
    """D83: a part of it, whatever the number of roles, in both directions and whatever is asked of each role."""
    indexes = {
        "person": "ix_memberships_shown_name",
        "service": "ix_assignments_(holders|roles)",
        "role": "ix_assignments_roles",
        "until": "ix_assignments_entity_id_end_date",
    }
    for shape, (ends, found) in filled.roles.items():
        shown = "\n".join(filled.plan(ends))
        assert not re.search(r"TEMP B-TREE|^(-> +)?Sort", shown, re.MULTILINE), (ends, shown)
        for text in (ends, found):
            assert re.search(indexes[shape.order], "\n".join(filled.plan(text))), (text, filled.plan(text))


def test_roles_of_all_entities_are_read_by_their_last_day(filled: Filled) -> None:
    """A million roles, of which some end within 30 days."""
    for text in filled.by_last_day:
        shown = "\n".join(filled.plan(text))
        assert "_assignments_end_date" in shown, shown


def test_an_access_review_reads_the_decisions_of_its_entity_only(filled: Filled) -> None:
    for index, texts in filled.reviewed.items():
        for text in texts:
            shown = "\n".join(filled.plan(text))
            table = index.removeprefix("pk_")
            assert index in shown or f"{table} USING PRIMARY KEY (entity_id=?" in shown, shown


def test_a_service_with_a_million_roles_is_not_read_for_one_entitys(filled: Filled) -> None:
    """Nor for those of one person."""
    looks = [filled.text(made) for shape, made in filled.pages.items() if {"service_id", "entity_id"} <= {*shape.given}]
    for text in looks:
        assert "_service_id" not in "\n".join(filled.plan(text)), text
    assert len(looks) >= 6


def test_a_roles_page_is_planned_from_the_text_that_postgresql_keeps(filled: Filled) -> None:
    """`make bench-scale` reads texts in which constants have become parameters without a type."""
    for made in filled.pages.values():
        first = plans.parameters(filled.text(made)) + 1
        parts = re.split(r"\b(?:true|false)\b", filled.text(made))
        kept = parts[0] + "".join(f"${number}{part}" for number, part in enumerate(parts[1:], first))
        assert filled.plan(kept)


def test_a_member_is_found_by_user_name_without_reading_the_entitys_other_members(filled: Filled) -> None:
    """D60: an entity may have twenty thousand, and each new one is looked for by name."""
    looks = [text for text in filled.statements if "UNION ALL" in text and "AS person" in text]
    for text in looks:
        steps = "\n".join(filled.plan(text))
        assert "ix_memberships_user_name" in steps, (text, steps)
    assert len(looks) >= 2


def test_no_removal_reads_a_whole_table_for_what_refers_to_it(filled: Filled) -> None:
    """Every foreign key is the start of an index, so that removing one entity does not read them all."""
    for table in METADATA.sorted_tables:
        for key in table.foreign_key_constraints:
            names = list(key.column_keys)
            marks = ["?" if filled.is_sqlite else f"${number}" for number in range(1, len(names) + 1)]
            where = " AND ".join(f"{name} = {mark}" for name, mark in zip(names, marks, strict=True))
            steps = filled.plan(f"DELETE FROM {table.name} WHERE {where}")
            assert not filled.reads_whole(steps), (table.name, steps)


async def test_a_sweep_reads_a_stretch_and_no_more(filled: Filled) -> None:
    """Expired rows never cost a request, nor a sweep the whole table."""
    async with filled.place.opened() as stores:
        removed = 0
        while True:
            removed += await stores.transient.sweep(now=ROWS)
            if stores.transient._swept_up_to == ("", b""):
                break
        assert removed == ROWS


def test_an_entitys_requests_are_read_in_their_order(filled: Filled) -> None:
    """D55: a page of a state costs the same after years."""
    for backwards in (False, True):
        steps = filled.plan(
            filled.text(filled.pages[_by_key(ChangeRequest, "entity_id", "state", backwards=backwards)])
        )
        assert not any("TEMP B-TREE" in step or step.startswith("Sort") for step in steps), steps


@pytest.mark.parametrize("searched", ["user_name sw", "email eq", "email sw", "external_id eq", "external_id sw"])
def test_a_filter_of_members_reads_a_range_of_the_entitys_index(filled: Filled, searched: str) -> None:
    """D60: whatever the number of members; of `co` no index can tell more than the entity."""
    member, operator = searched.split()
    index = {
        "user_name": "ix_memberships_shown_name",
        "email": "ix_memberships_shown_email",
        "external_id": "ix_memberships_external_id",
    }[member]
    looks = filled.filtered[(member, operator)]  # type: ignore[index]
    for text in looks:
        steps = "\n".join(filled.plan(text))
        assert index in steps, (text, steps)
        bounds = steps[steps.index(index) :].count(">") + steps[steps.index(index) :].count("<")
        assert filled.is_sqlite is False or operator == "eq" or bounds >= 2, steps
    assert len(looks) >= 2


@pytest.mark.parametrize("member", ["user_name", "email", "external_id"])
def test_a_search_inside_names_reads_the_entitys_members_only(filled: Filled, member: str) -> None:
    """D60: `co` costs what the entity has members, and nothing of other entities."""
    for text in filled.filtered[(member, "co")]:  # type: ignore[index]
        steps = "\n".join(filled.plan(text))
        assert "(entity_id=?" in steps if filled.is_sqlite else "Index Cond: (entity_id = " in steps, (text, steps)


def test_open_invitations_are_read_in_the_order_of_their_index(filled: Filled) -> None:
    """D60."""
    [asked] = [
        text
        for text in filled.statements
        if "WHERE memberships.invited AND" in text and "memberships.membership_id > " in text
    ]
    steps = "\n".join(filled.plan(asked))
    assert "ix_memberships_invited" in steps, steps
    assert "SORT" not in steps.upper().replace("TEMP B-TREE FOR ORDER BY", "SORT"), steps


def test_members_are_found_by_identifier_whatever_the_size_of_their_entity(filled: Filled) -> None:
    """D60: a hundred at once."""
    [asked] = [text for text in filled.statements if "memberships.membership_id IN (" in text and "UNION" not in text]
    assert "ix_memberships_membership_id" in "\n".join(filled.plan(asked))
