"""Indexes of entities by registration number, and of people by address."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from corpid.stores.sql.migrations import indexes

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0035"
phase = "expand"
locks = "nothing: the indexes are built while others write"
concurrently = True


def upgrade(op: Operations) -> None:
    """Build each index that is not there yet."""
    indexes.build(op, "ix_entities_number", "entities", ["registration_number", "entity_id"])
    indexes.build(op, "ix_users_email", "users", [sa.text("lower(substr(email, 1, 100))"), "user_id"])
