"""Indexes that migrations build and drop while others write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from alembic.operations import Operations

_IS_WHOLE: Final = sa.text("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:name)")


def build(
    op: Operations,
    name: str,
    table: str,
    columns: Sequence[str | sa.TextClause],
    *,
    where: str | None = None,
    unique: bool = False,
) -> None:
    """Build an index that is not there yet.

    `where` is the condition of the rows that are in it; without one all are. What a failed attempt left half built is
    removed; what it finished stays, since servers may depend on it.
    """
    concurrent = op.get_context().dialect.name == "postgresql"
    if concurrent and op.get_bind().scalar(_IS_WHOLE, {"name": name}):
        return
    condition = None if where is None else sa.text(where)
    op.drop_index(name, table, if_exists=True, postgresql_concurrently=concurrent)
    op.create_index(
        name,
        table,
        list(columns),
        unique=unique,
        postgresql_where=condition,
        sqlite_where=condition,
        postgresql_concurrently=concurrent,
    )
