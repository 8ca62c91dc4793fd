"""Indexes of the audit: by actor, action, entity, client, object."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0009"
phase = "expand"
locks = "nothing: the indexes are built beside the writers"
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
_IS_WHOLE = sa.text("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:name)")


def upgrade(op: Operations) -> None:
    """Build each index that is not there yet.

    What a failed attempt left of it is removed. An attempt that gives way to others is repeated, and goes on where it
    was.
    """
    concurrent = op.get_context().dialect.name == "postgresql"
    for column, condition in _INDEXES.items():
        name, where = f"ix_audit_{column}", None if condition is None else sa.text(condition)
        if concurrent and op.get_bind().scalar(_IS_WHOLE, {"name": name}):
            continue
        op.drop_index(name, "audit", if_exists=True, postgresql_concurrently=concurrent)
        op.create_index(
            name,
            "audit",
            [column, "number"],
            postgresql_where=where,
            sqlite_where=where,
            postgresql_concurrently=concurrent,
        )
