"""Sources of records (D65)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0015"
phase = "expand"
locks = "the tables of the directory and of clients against readers and writers, for a moment each"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
_TABLES = (
    "clients", "entities", "users", "services", "memberships", "administrators", "operators", "assignments",
    "third_party_grants", "third_party_assignments",
)  # fmt: skip


def upgrade(op: Operations) -> None:
    """Add a column to each table of records, two to users.

    What is there comes from nobody known, and so does what the previous version's servers add.
    """
    for table in _TABLES:
        op.add_column(table, sa.Column("source", _TEXT, nullable=False, server_default=""))
    op.add_column("users", sa.Column("member_sources", _TEXT, nullable=False, server_default="{}"))
