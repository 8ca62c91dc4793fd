"""An index of names."""

from __future__ import annotations

from alembic import op

revision = "9002"
down_revision = "9001"
branch_labels = None
depends_on = None

phase = "expand"
locks = "nothing: the index is built beside the writers"
concurrently = True


def upgrade() -> None:
    """Build an index without keeping a writer waiting."""
    concurrent = op.get_context().dialect.name == "postgresql"
    op.drop_index("ix_users_sort_name", "users", if_exists=True, postgresql_concurrently=concurrent)
    op.create_index("ix_users_sort_name", "users", ["sort_name"], postgresql_concurrently=concurrent)
