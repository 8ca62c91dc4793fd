"""Indexes of roles by entity and by service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0025"
phase = "expand"
locks = "nothing: the indexes are built beside the writers"
concurrently = True

_INDEXES = (
    ("assignments", "entity_id"),
    ("assignments", "service_id"),
    ("third_party_assignments", "entity_id"),
    ("third_party_assignments", "client_entity_id"),
    ("third_party_assignments", "service_id"),
)
"""table, and the column that comes before the person"""
_IS_WHOLE = sa.text("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:name)")


def upgrade(op: Operations) -> None:
    """Build each missing index, then drop that of the first column alone.

    What a failed attempt left half built is removed; what it finished stays, since lists may already depend on it.
    """
    concurrent = op.get_context().dialect.name == "postgresql"
    for table, column in _INDEXES:
        alone = f"ix_{table}_{column}"
        name = f"{alone}_user_id"
        if not (concurrent and op.get_bind().scalar(_IS_WHOLE, {"name": name})):
            op.drop_index(name, table, if_exists=True, postgresql_concurrently=concurrent)
            op.create_index(name, table, [column, "user_id"], postgresql_concurrently=concurrent)
        op.drop_index(alone, table, if_exists=True, postgresql_concurrently=concurrent)
