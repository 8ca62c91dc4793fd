"""Yearly access reviews of entities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0034"
phase = "expand"
locks = "the tables users and entities against writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=False)


def _integer(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def _to(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{target}.{column}"], name=f"fk_{table}_{column}", ondelete="CASCADE")


def upgrade(op: Operations) -> None:
    """Add two tables that the previous version's servers do not use."""
    op.create_table(
        "access_reviews",
        _text("entity_id"),
        *map(_integer, ("due_at", "remind_at", "began_at")),
        _text("began_by"),
        _integer("signed_off_at"),
        _text("signed_off_by"),
        *map(_integer, ("kept", "ended")),
        _to("access_reviews", "entity_id", "entities"),
        sa.PrimaryKeyConstraint("entity_id", name="pk_access_reviews"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_access_reviews_remind_at", "access_reviews", ["remind_at"])
    op.create_table(
        "access_review_decisions",
        *map(_text, ("entity_id", "user_id", "decision", "seen")),
        _integer("decided_at"),
        _text("decided_by"),
        _to("access_review_decisions", "entity_id", "access_reviews"),
        _to("access_review_decisions", "user_id", "users"),
        sa.PrimaryKeyConstraint("entity_id", "user_id", name="pk_access_review_decisions"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_access_review_decisions_user_id", "access_review_decisions", ["user_id"])
