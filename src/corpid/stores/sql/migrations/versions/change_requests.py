"""Changes that wait for another administrator's approval (D55)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0013"
phase = "expand"
locks = "the tables entities and services against readers and writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def _texts(*names: str) -> tuple[sa.Column[str], ...]:
    return tuple(sa.Column(name, _TEXT, nullable=False) for name in names)


def upgrade(op: Operations) -> None:
    """Add two columns, by which nothing needs approval, and a table."""
    op.add_column("entities", sa.Column("approvals", _TEXT, nullable=False, server_default="none"))
    op.add_column("services", sa.Column("approval_required", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "change_requests",
        *_texts("request_id", "entity_id", "requester", "bound_to", "changes", "reason"),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        *_texts("state", "decided_by", "decided_reason"),
        sa.Column("decided_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["entity_id"], ["entities.entity_id"], name="fk_change_requests_entity_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("request_id", name="pk_change_requests"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_change_requests_entity_id_state_request_id", "change_requests", ["entity_id", "state", "request_id"]
    )
    op.create_index("ix_change_requests_state_request_id", "change_requests", ["state", "request_id"])
