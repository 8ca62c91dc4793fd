"""An index of entities by the beginning of their folded name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0016"
phase = "expand"
locks = "nothing: the index is built beside the writers"
concurrently = True


def upgrade(op: Operations) -> None:
    """Build the index, after removing what a failed attempt left."""
    name, concurrent = "ix_entities_name", op.get_context().dialect.name == "postgresql"
    op.drop_index(name, "entities", if_exists=True, postgresql_concurrently=concurrent)
    op.create_index(
        name,
        "entities",
        [sa.text("substr(search_text, 1, 100)"), "entity_id"],
        postgresql_concurrently=concurrent,
    )
