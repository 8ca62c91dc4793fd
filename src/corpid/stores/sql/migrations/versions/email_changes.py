"""Changes of e-mail addresses that wait before they take effect (D61)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0027"
phase = "expand"
locks = "the table users against writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    """Add a table that the previous version's servers do not use.

    They send e-mails to the address in effect, as this version does.
    """
    op.create_table(
        "email_changes",
        *(sa.Column(name, _TEXT, nullable=False) for name in ("user_id", "link_hash", "old_email", "new_email")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("proved_at", "effective_at")),
        sa.ForeignKeyConstraint(["user_id"], ["users.user_id"], name="fk_email_changes_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", name="pk_email_changes"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_email_changes_link_hash", "email_changes", ["link_hash"])
    op.create_index("ix_email_changes_effective_at", "email_changes", ["effective_at"])
