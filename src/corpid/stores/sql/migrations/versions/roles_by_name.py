"""An index of an entity's roles by their name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.stores.sql.migrations import indexes

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0050"
phase = "expand"
locks = "nothing: the index is built while others write"
concurrently = True

_COLUMNS = ("entity_id", "role", "service_id", "user_id", "sub_entity", "ref")


def upgrade(op: Operations) -> None:
    """Build the index if it is not there yet."""
    indexes.build(op, "ix_assignments_roles", "assignments", _COLUMNS)
