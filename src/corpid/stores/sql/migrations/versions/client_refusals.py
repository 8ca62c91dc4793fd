"""The latest refusals of each client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0031"
phase = "expand"
locks = "the table clients against writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    """Add a table that the previous version's servers do not use."""
    op.create_table(
        "client_refusals",
        sa.Column("client_id", _TEXT, nullable=False),
        sa.Column("claimed", sa.Boolean(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("request_id", _TEXT, nullable=False),
        *(sa.Column(name, _TEXT, nullable=False) for name in ("method", "path", "reason", "detail")),
        sa.ForeignKeyConstraint(
            ["client_id"], ["clients.client_id"], name="fk_client_refusals_client_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("client_id", "claimed", "at", "request_id", name="pk_client_refusals"),
        sqlite_with_rowid=False,
    )
