"""Costs stay flat from a thousand to a million users (DESIGN "Speed"): PostgreSQL's plans on filled tables."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from corpid.adapters.sql.tables import METADATA
from tests import engines
from tests.adapters.places import Place
from tests.adapters.request_statements import request_statements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid.adapters.sql.statements import Prepared
    from corpid.adapters.sql.stores import SqlStores

FILL = """
INSERT INTO users SELECT 'u'||n, 'u'||n, 'u'||n, 'n', '', '', '', '', '', true FROM generate_series(1, 20000) n;
INSERT INTO entities SELECT 'e'||n, 'UEN', 'r'||n, 'SG', 'E '||n, 'Registered', true, 'e '||n||E'\\n'||'r'||n
    FROM generate_series(1, 20000) n;
INSERT INTO services SELECT 's'||n, 's', '[]', '[]', false, '', '[]', '[]', true FROM generate_series(1, 5000) n;
INSERT INTO clients SELECT 'c'||n, 'c', true, '{}' FROM generate_series(1, 10000) n;
INSERT INTO fetched_key_sets SELECT 'c'||n, 'https://rp.example', '{}', n FROM generate_series(1, 10000) n;
INSERT INTO credentials SELECT 'u'||n, 'hash', '', '', NULL, '', 0 FROM generate_series(1, 20000) n;
INSERT INTO memberships SELECT 'u'||n, 'e'||m, true FROM generate_series(1, 20000) n, generate_series(1, 3) m;
INSERT INTO memberships SELECT 'u1', 'e'||m, true FROM generate_series(4, 5000) m;
INSERT INTO assignments SELECT 'u'||n, 'e'||m, 's'||(1 + (n + m) % 5000), 'r', '', '', '', '', '[]'
    FROM generate_series(1, 20000) n, generate_series(1, 3) m;
INSERT INTO third_party_grants SELECT 'e'||n, 'e'||m, 's'||(1 + n % 5000), 'r', '', '', '', '', '[]'
    FROM generate_series(1, 10000) n, generate_series(1, 3) m;
INSERT INTO third_party_assignments SELECT 'u'||n, 'e'||m, 'e'||n, 's'||(1 + n % 5000), 'r', '', '', '', '', '[]'
    FROM generate_series(1, 10000) n, generate_series(1, 3) m;
INSERT INTO sessions SELECT 's'||n, 'u'||n, 'b', 1, '[]', 2, 1800000000 + n, '' FROM generate_series(1, 20000) n;
INSERT INTO deployment SELECT 'n'||n, 'v' FROM generate_series(1, 5000) n;
INSERT INTO generation_use SELECT 'c'||n, 'legacy', '', 1, 1 FROM generate_series(1, 10000) n;
INSERT INTO keys SELECT 'k'||n, 'sig', '', 1, 1, NULL, NULL, NULL FROM generate_series(1, 5000) n;
INSERT INTO audit (at, actor, action, object, client_id, entity_id, outcome, request_id, detail)
    SELECT n, '', '', '', '', '', '', '', '{}' FROM generate_series(1, 20000) n;
INSERT INTO transient SELECT 'code', sha256(n::text::bytea), '', 0, n FROM generate_series(1, 50000) n;
ANALYZE
"""


@pytest.fixture(scope="module")
def filled() -> Iterator[Place]:
    """A database with enough rows that reading a whole table costs more than an index."""
    with engines.postgresql(migrated=True) as dsn:
        place = Place(dsn)
        place.sql(FILL)
        yield place


def plan(place: Place, statement: str, parameters: int) -> list[str]:
    """The steps of the plan that serves every value: what a prepared statement comes to use."""
    values = ", ".join(["NULL"] * parameters)
    rows = place.sql(
        f"SET plan_cache_mode = force_generic_plan; PREPARE asked AS {statement}; "
        f"EXPLAIN EXECUTE asked{f'({values})' if values else ''}"
    )
    return [step.strip() for (step,) in rows]


def highest_parameter(text: str) -> int:
    return max((number for number in range(1, 40) if f"${number}" in text), default=0)


def statements() -> dict[str, Prepared]:
    found: dict[str, Prepared] = {}

    async def collect(stores: SqlStores) -> None:
        transient = {name: getattr(stores.transient, name) for name in ("put", "add", "count")}
        found.update(request_statements(stores) | transient)

    with engines.postgresql(migrated=True) as dsn:
        Place(dsn).run(collect)
    return found


def test_no_statement_of_a_request_reads_a_whole_table(filled: Place) -> None:
    plans = {name: plan(filled, made.text, highest_parameter(made.text)) for name, made in statements().items()}
    assert {name: steps for name, steps in plans.items() if any("Seq Scan" in step for step in steps)} == {}


def test_the_first_keystrokes_of_a_search_read_the_persons_memberships_only(filled: Place) -> None:
    """D50: with thousands of entities a person costs what they hold, and no one else's."""
    for name, made in statements().items():
        if "choices" in name or name == "usable":
            steps = plan(filled, made.text, highest_parameter(made.text))
            assert any("Index" in step and "pk_memberships" in step for step in steps), steps


def test_no_removal_reads_a_whole_table_for_what_refers_to_it(filled: Place) -> None:
    for table in METADATA.sorted_tables:
        for key in table.foreign_key_constraints:
            where = " AND ".join(f"{name} = ${number}" for number, name in enumerate(key.column_keys, start=1))
            steps = plan(filled, f"DELETE FROM {table.name} WHERE {where}", len(key.column_keys))
            assert not any("Seq Scan" in step for step in steps), (table.name, steps)


def test_a_sweep_reads_a_stretch_and_no_more(filled: Place) -> None:
    """Expired rows never cost a request, nor a sweep the whole table."""

    async def sweep(stores: SqlStores) -> None:
        removed = 0
        while True:
            removed += await stores.transient.sweep(now=0)
            if stores.transient._swept_up_to == ("", b""):
                break
        assert removed == 50_000

    async def opened() -> None:
        async with filled.opened() as stores:
            await sweep(stores)

    asyncio.run(opened())
