"""A new database, and one of the oldest schema that migrations lead on from (docs/decisions/0043)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid.stores.sql import schema
from corpid.stores.sql.migration import EXPAND, OLDEST, SchemaOlder, SchemaTooOld
from tests import engines
from tests.adapters.databases import Place
from tests.upgrades.databases import make_oldest, read_shape

if TYPE_CHECKING:
    from pathlib import Path


def assert_alike(migrated: Place, made: Place) -> None:
    """Columns, types, defaults, constraints, indexes, triggers with their order, and rows."""
    schema.migrate(migrated.address)
    first, second = read_shape(migrated), read_shape(made)
    assert all(second.values())
    for kind, parts in second.items():
        assert first[kind] == parts, kind


def test_the_migrations_lead_to_the_schema_of_a_new_file(tmp_path: Path) -> None:
    assert_alike(make_oldest(tmp_path / "oldest.db"), Place(engines.sqlite(tmp_path / "new.db")))


@pytest.mark.full
def test_the_migrations_lead_to_the_schema_of_a_new_postgresql(postgresql: Place) -> None:
    with engines.postgresql() as dsn:
        assert_alike(make_oldest(dsn), postgresql)


def test_a_database_of_the_oldest_schema_keeps_its_rows_and_gets_what_is_new(empty: Place) -> None:
    place = make_oldest(empty.address)
    place.sql("INSERT INTO clients (client_id, name, enabled, record) VALUES ('rp', 'RP', TRUE, '{}')")
    place.sql("INSERT INTO keys (kid, use, secret, created_at, active_from) VALUES ('a', 'sig', 'sealed', 1, 2)")
    place.sql(
        "INSERT INTO entities (entity_id, type, registration_number, country, name, status, enabled, search_text) "
        "VALUES ('E1', 'UEN', '1', 'SG', 'Acme', '', TRUE, 'acme')"
    )
    place.sql(
        "INSERT INTO users (user_id, user_name, user_name_key, name, email, language, identity_number, identity_country, "
        "account_type, enabled, placeholder) VALUES ('u1', 'ana', 'ana', 'Ana Tan', '', 'en', '', '', '', TRUE, FALSE)"
    )
    place.sql("INSERT INTO memberships (user_id, entity_id, enabled) VALUES ('u1', 'E1', TRUE)")
    with pytest.raises(SchemaOlder, match="run `corpid migrate`"):
        schema.check(place.address)
    schema.migrate(place.address)
    schema.check(place.address)
    assert place.sql("SELECT client_id, name, record FROM clients") == [("rp", "RP", "{}")]
    assert place.sql("SELECT kid, use, secret FROM keys WHERE certificate_chain IS NULL") == [("a", "sig", "sealed")]
    assert place.sql("SELECT job_id FROM jobs") == []
    assert place.sql("SELECT person_full_name, person_name_key FROM memberships") == [("Ana Tan", "ana")]
    place.sql("UPDATE users SET name = 'Ana Lim'")
    assert place.sql("SELECT person_full_name FROM memberships") == [("Ana Lim",)]


def test_an_older_database_says_what_leads_on_from_it_and_is_left_alone(empty: Place) -> None:
    place = make_oldest(empty.address)
    place.sql(f"UPDATE alembic_version SET version_num = '{int(OLDEST) - 1:04}'")
    before = read_shape(place)
    for use in (schema.check, schema.plan, schema.migrate):
        with pytest.raises(
            SchemaTooOld, match=r"has the schema '0039'.*: run `corpid migrate` of commit 4af0316b on it"
        ):
            use(place.address)
    assert read_shape(place) == before


def test_an_empty_database_is_made_in_one_step(empty: Place) -> None:
    said: list[str] = []
    schema.migrate(empty.address, report=said.append)
    assert said == [f"{schema.find_head()}: done ({EXPAND}: Every table of an empty database)"]
    assert empty.sql("SELECT version_num FROM alembic_version") == [(schema.find_head(),)]
    assert empty.sql("SELECT value FROM deployment WHERE name = 'schema_serves_since'") == [(OLDEST,)]
