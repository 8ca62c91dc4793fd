"""The people in a change request, as known when it was made (D68)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0039"
phase = "expand"
locks = "the table change_requests against readers and writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    """Add a column; a request that waits names nobody yet."""
    op.add_column("change_requests", sa.Column("people", _TEXT, nullable=False, server_default="[]"))
