"""Indexes of roles by entity and by service."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def upgrade(op: Operations) -> None:
    """Build the indexes, after removing what a failed attempt left.

    They replace those of the first column alone.
    """
    concurrent = op.get_context().dialect.name == "postgresql"
    for table, column in _INDEXES:
        alone = f"ix_{table}_{column}"
        op.drop_index(f"{alone}_user_id", table, if_exists=True, postgresql_concurrently=concurrent)
        op.create_index(f"{alone}_user_id", table, [column, "user_id"], postgresql_concurrently=concurrent)
        op.drop_index(alone, table, if_exists=True, postgresql_concurrently=concurrent)
