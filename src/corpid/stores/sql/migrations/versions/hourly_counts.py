"""Hourly counters of completed sign-ins and refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0032"
phase = "expand"
locks = "nothing: the table is new"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    """Add a table that the previous version's servers do not use."""
    op.create_table(
        "hourly_counts",
        sa.Column("hour", sa.BigInteger(), nullable=False),
        sa.Column("client_id", _TEXT, nullable=False),
        sa.Column("reason", _TEXT, nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hour", "client_id", "reason", name="pk_hourly_counts"),
        sqlite_with_rowid=False,
    )
