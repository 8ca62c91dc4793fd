"""Requests to be deleted, and names of browsers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0029"
phase = "expand"
locks = "the table users against writers, and sessions against readers and writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    """Add two tables and a column.

    The previous version's servers do not use them: a session of theirs cannot be given a name.
    """
    op.create_table(
        "deletion_requests",
        sa.Column("user_id", _TEXT, nullable=False),
        sa.Column("requested_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.user_id"], name="fk_deletion_requests_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", name="pk_deletion_requests"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "browser_names",
        *(sa.Column(name, _TEXT, nullable=False) for name in ("user_id", "browser_key", "name")),
        sa.Column("named_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.user_id"], name="fk_browser_names_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "browser_key", name="pk_browser_names"),
        sqlite_with_rowid=False,
    )
    op.add_column("sessions", sa.Column("browser_key", _TEXT, nullable=False, server_default=""))
