"""Words of the records that were there before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from corpid.rules.directory.words import encode_words
from corpid.stores.sql.migration import Backfill

if TYPE_CHECKING:
    from collections.abc import Sequence


def fill(table: str, keys: Sequence[str], names: Sequence[str], rows_per_second: int) -> Backfill:
    """Find the words of the records of a table that have none.

    What a server writes meanwhile has them, or is noted by a trigger. `keys` begin with the column that is walked.
    `names` are the columns that were searched then: a later one may not be there yet.
    """
    first = keys[0]
    columns = ", ".join(dict.fromkeys((*keys, *names)))
    part = sa.text(f"SELECT {columns} FROM {table} WHERE {first} > :after AND {first} <= :end AND words = '{{}}'")
    this = " AND ".join(f"{each} = :{each}" for each in keys)
    write = sa.text(f"UPDATE {table} SET words = :words WHERE {this} AND words = '{{}}'")

    def find(connection: sa.Connection, values: dict[str, Any]) -> None:
        rows = [dict(row) for row in connection.execute(part, values).mappings() if any(row[each] for each in names)]
        found = [{**{each: row[each] for each in keys}, "words": encode_words(row, names)} for row in rows]
        if found:
            connection.execute(write, found)

    return Backfill(table=table, key=first, statement=find, rows_per_second=rows_per_second)
