"""Indexes of the audit: by actor, action, entity, client, object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.stores.sql.migrations import indexes

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0009"
phase = "expand"
locks = "nothing: the indexes are built while others write"
concurrently = True

_INDEXES = {
    "actor": None,
    "action": None,
    "entity_id": "entity_id <> ''",
    "other_entity_id": "other_entity_id <> ''",
    "client_id": "client_id <> ''",
    "object": "substr(action, 1, 8) <> 'sign_in.'",
}
"""column → the condition of the rows that are in its index"""


def upgrade(op: Operations) -> None:
    """Build each index that is not there yet.

    An attempt that gives way to others is repeated, and goes on where it was.
    """
    for column, condition in _INDEXES.items():
        indexes.build(op, f"ix_audit_{column}", "audit", [column, "number"], where=condition)
