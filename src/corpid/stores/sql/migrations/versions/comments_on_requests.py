"""Comments on requests for approval (D55)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0056"
phase = "expand"
locks = "the table change_requests against readers and writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    """Add the column, which stays empty for requests that are there."""
    op.add_column("change_requests", sa.Column("comments", _TEXT, nullable=False, server_default="[]"))
