"""People who did not want a passkey when they were offered one (D46)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0028"
phase = "expand"
locks = "the table users against writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    """Add a table that the previous version's servers do not use.

    They offer nobody a passkey.
    """
    op.create_table(
        "passkey_offers",
        sa.Column("user_id", _TEXT, nullable=False),
        sa.Column("declined_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.user_id"], name="fk_passkey_offers_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", name="pk_passkey_offers"),
        sqlite_with_rowid=False,
    )
