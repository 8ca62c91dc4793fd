"""Administrators of entities, and operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0007"
phase = "expand"
locks = "the tables users and memberships against writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def _texts(*names: str) -> tuple[sa.Column[str], ...]:
    return tuple(sa.Column(name, _TEXT, nullable=False) for name in names)


def upgrade(op: Operations) -> None:
    """Add two tables that the previous version's servers do not use."""
    op.create_table(
        "administrators",
        *_texts("user_id", "entity_id", "level", "services"),
        sa.ForeignKeyConstraint(
            ["user_id", "entity_id"],
            ["memberships.user_id", "memberships.entity_id"],
            name="fk_administrators_user_id_entity_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_id", "entity_id", name="pk_administrators"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_administrators_entity_id", "administrators", ["entity_id"])
    op.create_table(
        "operators",
        *_texts("user_id", "level"),
        sa.ForeignKeyConstraint(["user_id"], ["users.user_id"], name="fk_operators_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", name="pk_operators"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_operators_level", "operators", ["level"])
