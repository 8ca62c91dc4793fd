"""E-mails about the administration of entities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from corpid.stores.sql.migrations import indexes

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0033"
phase = "expand"
locks = "the tables users and entities against writers, for a moment; the indexes are built while others write"
concurrently = True

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
_ENDS = "end_date <> '9999-12-31'"


def upgrade(op: Operations) -> None:
    """Add a table and indexes.

    The previous version's servers do not use them.
    """
    op.create_table(
        "notices",
        *(sa.Column(name, _TEXT, nullable=False) for name in ("user_id", "kind", "entity_id", "subject", "facts")),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("taken_by", _TEXT, nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("taken_until", "sent_at")),
        sa.ForeignKeyConstraint(["user_id"], ["users.user_id"], name="fk_notices_user_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["entity_id"], ["entities.entity_id"], name="fk_notices_entity_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "kind", "entity_id", "subject", name="pk_notices"),
        sqlite_with_rowid=False,
        if_not_exists=True,
    )
    indexes.build(op, "ix_notices_sent_at_due_at", "notices", ["sent_at", "due_at"])
    indexes.build(op, "ix_notices_entity_id", "notices", ["entity_id"])
    indexes.build(op, "ix_provisioning_tokens_expires_at", "provisioning_tokens", ["expires_at"])
    for table in ("assignments", "third_party_assignments"):
        indexes.build(op, f"ix_{table}_end_date", table, ["end_date", "entity_id"], where=_ENDS)
