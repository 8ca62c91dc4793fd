"""An index of people by the beginning of their name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0020"
phase = "expand"
locks = "nothing: the index is built beside the writers"
concurrently = True


def upgrade(op: Operations) -> None:
    """Build the index, after removing what a failed attempt left."""
    name, concurrent = "ix_users_name", op.get_context().dialect.name == "postgresql"
    op.drop_index(name, "users", if_exists=True, postgresql_concurrently=concurrent)
    op.create_index(
        name, "users", [sa.text("lower(substr(name, 1, 100))"), "user_id"], postgresql_concurrently=concurrent
    )
