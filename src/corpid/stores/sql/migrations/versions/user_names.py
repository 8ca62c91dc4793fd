"""An index of people by the beginning of their name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from corpid.stores.sql.migrations import indexes

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0020"
phase = "expand"
locks = "nothing: the index is built while others write"
concurrently = True


def upgrade(op: Operations) -> None:
    """Build the index if it is not there yet."""
    indexes.build(op, "ix_users_name", "users", [sa.text("lower(substr(name, 1, 100))"), "user_id"])
