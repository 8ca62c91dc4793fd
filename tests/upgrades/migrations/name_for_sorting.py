"""A name for sorting."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "9001"
down_revision = "head"
branch_labels = None
depends_on = None

phase = "expand"
locks = "the table users, for a moment"


def upgrade() -> None:
    """Add a column that the version before does not know."""
    op.add_column("users", sa.Column("sort_name", sa.Text(), nullable=True))
