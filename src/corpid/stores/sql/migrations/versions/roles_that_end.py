"""An index of an entity's roles by their last day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.stores.sql.migrations import indexes

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0037"
phase = "expand"
locks = "nothing: the index is built while others write"
concurrently = True

_NAME = "ix_assignments_entity_id_end_date"
_COLUMNS = ("entity_id", "end_date", "user_id", "service_id", "role", "sub_entity", "ref")
"""the order of the list, so that no engine sorts what may be 20,000 roles for each page"""
_ENDS = "end_date <> '9999-12-31'"


def upgrade(op: Operations) -> None:
    """Build the index if it is not there yet."""
    indexes.build(op, _NAME, "assignments", _COLUMNS, where=_ENDS)
