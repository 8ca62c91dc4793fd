"""Links that an entity's administrator asked for (D69)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0052"
phase = "expand"
locks = "the table links against readers and writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    """Add columns, which stay empty for links that are there."""
    for name in ("entity_id", "asked_by", "sent_to"):
        op.add_column("links", sa.Column(name, _TEXT, nullable=False, server_default=""))
