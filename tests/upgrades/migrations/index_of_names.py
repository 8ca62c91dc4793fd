"""An index of names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "9002"
phase = "expand"
locks = "nothing: the index is built while others write"
concurrently = True


def upgrade(op: Operations) -> None:
    """Build an index without keeping a writer waiting."""
    concurrent = op.get_context().dialect.name == "postgresql"
    op.drop_index("ix_users_sort_name", "users", if_exists=True, postgresql_concurrently=concurrent)
    op.create_index("ix_users_sort_name", "users", ["sort_name"], postgresql_concurrently=concurrent)
