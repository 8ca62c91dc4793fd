"""The serving processes of a deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0036"
phase = "expand"
locks = "nothing: the table is new"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    """Add a table that the previous version's servers do not use."""
    op.create_table(
        "server_processes",
        sa.Column("process_id", _TEXT, nullable=False),
        sa.Column("host", _TEXT, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("address", _TEXT, nullable=False),
        sa.Column("version", _TEXT, nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.Column("settings", _TEXT, nullable=False),
        sa.PrimaryKeyConstraint("process_id", name="pk_server_processes"),
        sqlite_with_rowid=False,
    )
