"""A name for sorting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "9001"
phase = "expand"
locks = "the table users, for a moment"


def upgrade(op: Operations) -> None:
    """Add a column that the version before does not know."""
    op.add_column("users", sa.Column("sort_name", sa.Text(), nullable=True))
