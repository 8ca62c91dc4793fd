"""Remembered consents (D29)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0026"
phase = "expand"
locks = "the tables memberships and clients against writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
_KEY = ("user_id", "entity_id", "client_id", "issuer_id", "scopes")


def upgrade(op: Operations) -> None:
    """Add a table that the previous version's servers do not use.

    They ask for consent every time.
    """
    op.create_table(
        "consents",
        *(sa.Column(name, _TEXT, nullable=False) for name in _KEY),
        sa.Column("given_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id", "entity_id"],
            ["memberships.user_id", "memberships.entity_id"],
            name="fk_consents_user_id_entity_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name="fk_consents_client_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint(*_KEY, name="pk_consents"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_consents_expires_at", "consents", ["expires_at"])
    op.create_index("ix_consents_client_id", "consents", ["client_id"])
