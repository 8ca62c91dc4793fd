"""Descriptions of services and their roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0030"
phase = "expand"
locks = "the table services against readers and writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    """Add two columns that the previous version's servers do not use."""
    op.add_column("services", sa.Column("description", _TEXT, nullable=False, server_default=""))
    op.add_column("services", sa.Column("role_descriptions", _TEXT, nullable=False, server_default="[]"))
