"""Databases of the oldest schema that migrations lead on from, and what a schema has."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from corpid.stores.sql.migration import OLDEST
from tests.adapters.databases import Place, postgresql_rows

if TYPE_CHECKING:
    Shape = dict[str, list[tuple[str, ...]]]

SCHEMAS: Final = Path(__file__).parent / "schemas"
"""dumps of databases that the migrations up to the oldest schema made, with their two rows"""

_SQLITE: Final = {
    "tables": "SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name",
    "columns": (
        'SELECT t.name, c.name, c.type, c."notnull", c.dflt_value, c.pk FROM sqlite_schema t, pragma_table_xinfo(t.name) c '
        "WHERE t.type = 'table' ORDER BY 1, 2"
    ),
    "indexes": "SELECT tbl_name, sql FROM sqlite_schema WHERE type = 'index' AND sql <> '' ORDER BY tbl_name, rowid",
    "triggers": "SELECT tbl_name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY tbl_name, rowid",
}
_POSTGRESQL: Final = {
    "columns": (
        "SELECT table_name, column_name, data_type, is_nullable, collation_name, column_default, is_identity "
        "FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2"
    ),
    "constraints": (
        "SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE connamespace = 'public'::regnamespace AND conrelid <> 0 ORDER BY 1::text, 2"
    ),
    "indexes": "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
    "triggers": "SELECT pg_get_triggerdef(oid), tgenabled FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1",
    "functions": (
        "SELECT proname, replace(pg_get_functiondef(oid), E'\\n', ' ') FROM pg_proc "
        "WHERE pronamespace = 'public'::regnamespace ORDER BY 1"
    ),
    "relations": (
        "SELECT relname, relkind, relpersistence, reloptions FROM pg_class "
        "WHERE relnamespace = 'public'::regnamespace ORDER BY 1"
    ),
    "sequences": (
        "SELECT sequencename, data_type, start_value, increment_by, min_value, max_value, cycle FROM pg_sequences "
        "WHERE schemaname = 'public' ORDER BY 1"
    ),
}
_ROWS: Final = {
    "revision": "SELECT version_num FROM alembic_version",
    "deployment": "SELECT name, value FROM deployment ORDER BY name",
}


class StopAfter(threading.Event):
    """Somebody presses Ctrl-C after so many looks."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    def is_set(self) -> bool:
        self.looks -= 1
        return self.looks < 0


def make_oldest(address: Path | str) -> Place:
    """An empty database of the oldest schema."""
    if isinstance(address, Path):
        with closing(sqlite3.connect(address)) as database:
            database.executescript((SCHEMAS / f"{OLDEST}.sqlite.sql").read_text(encoding="utf-8"))
    else:
        postgresql_rows(address, (SCHEMAS / f"{OLDEST}.postgresql.sql").read_text(encoding="utf-8"))
    return Place(address)


def read_shape(place: Place) -> Shape:
    """Everything that a schema has, and the rows that are in it from the start.

    Columns may stand in any order. So may the parts of a SQLite table's statement, which are listed one by one.
    """
    asked = _POSTGRESQL if isinstance(place.address, str) else _SQLITE
    found = {name: place.sql(question) for name, question in (*asked.items(), *_ROWS.items())}
    if asked is _SQLITE:
        found["tables"] = [(name, *sorted(_words(sql))) for name, sql in found["tables"]]
        for kind in ("indexes", "triggers"):
            found[kind] = [(name, " ".join(sql.split())) for name, sql in found[kind]]
    return found


def _words(sql: str) -> list[str]:
    return sql.replace(",", " ").replace(")", " ) ").replace("(", " ( ").split()
