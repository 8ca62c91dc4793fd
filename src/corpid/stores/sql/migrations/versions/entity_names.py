"""An index of entities by the beginning of their folded name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from corpid.stores.sql.migrations import indexes

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0016"
phase = "expand"
locks = "nothing: the index is built while others write"
concurrently = True


def upgrade(op: Operations) -> None:
    """Build the index if it is not there yet."""
    indexes.build(op, "ix_entities_name", "entities", [sa.text("substr(search_text, 1, 100)"), "entity_id"])
