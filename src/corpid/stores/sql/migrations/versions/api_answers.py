"""First answers of the admin API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0011"
phase = "expand"
locks = "nothing"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    """Add a table that the previous version's servers do not use."""
    op.create_table(
        "api_answers",
        sa.Column("client_id", _TEXT, nullable=False),
        sa.Column("key", _TEXT, nullable=False),
        sa.Column("answer", _TEXT, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("client_id", "key", name="pk_api_answers"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_api_answers_expires_at", "api_answers", ["expires_at"])
