"""The largest lead of each client's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0038"
phase = "expand"
locks = "the table clients against writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    """Add a table that the previous version's servers do not use."""
    op.create_table(
        "client_clocks",
        sa.Column("client_id", _TEXT, nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("period", "lead", "lead_before")),
        sa.ForeignKeyConstraint(
            ["client_id"], ["clients.client_id"], name="fk_client_clocks_client_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("client_id", name="pk_client_clocks"),
        sqlite_with_rowid=False,
    )
