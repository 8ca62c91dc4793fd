"""Certificates of signing keys.

Counters of what clients use of a generation that ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0002"
phase = "expand"
locks = "the tables keys and clients, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    """Add a column to the keys, and a table."""
    op.add_column("keys", sa.Column("certificate_chain", _TEXT, nullable=True))
    op.create_table(
        "generation_use",
        *(sa.Column(name, _TEXT, nullable=False) for name in ("client_id", "generation", "habit")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("count", "last_at")),
        sa.ForeignKeyConstraint(
            ["client_id"], ["clients.client_id"], name="fk_generation_use_client_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("client_id", "generation", "habit", name="pk_generation_use"),
        sqlite_with_rowid=False,
    )
