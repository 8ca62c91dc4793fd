"""Department and job title of memberships (D84)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0040"
phase = "expand"
locks = "the table memberships against readers and writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    """Add the columns, which the previous version neither reads nor writes."""
    for name in ("department", "job_title"):
        op.add_column("memberships", sa.Column(name, _TEXT, nullable=False, server_default=""))
