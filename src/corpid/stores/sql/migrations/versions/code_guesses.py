"""Counts of guesses at second-factor codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0006"
phase = "expand"
locks = "the table users against writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    """Add a table that the previous version's servers do not use."""
    op.create_table(
        "code_guesses",
        *(sa.Column(name, _TEXT, nullable=False) for name in ("user_id", "browser", "factors")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("guesses", "paused_until", "told_at")),
        sa.ForeignKeyConstraint(["user_id"], ["users.user_id"], name="fk_code_guesses_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "browser", name="pk_code_guesses"),
        sqlite_with_rowid=False,
    )
