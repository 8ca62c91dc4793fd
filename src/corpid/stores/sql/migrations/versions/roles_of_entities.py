"""Indexes of roles by entity and by service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.stores.sql.migrations import indexes

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0025"
phase = "expand"
locks = "nothing: the indexes are built while others write"
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
    """Build each missing index, then drop that of the first column alone."""
    for table, column in _INDEXES:
        indexes.build(op, f"ix_{table}_{column}_user_id", table, [column, "user_id"])
        indexes.drop(op, f"ix_{table}_{column}", table)
