"""An index of an entity's people with roles at a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.stores.sql.migrations import indexes

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0042"
phase = "expand"
locks = "nothing: the index is built while others write"
concurrently = True


def upgrade(op: Operations) -> None:
    """Build the index if it is not there yet."""
    indexes.build(op, "ix_assignments_holders", "assignments", ["entity_id", "service_id", "user_id"])
