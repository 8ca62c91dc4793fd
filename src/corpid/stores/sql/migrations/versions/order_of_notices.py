"""An index of the order in which notices leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from corpid.stores.sql.migrations import indexes

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0057"
phase = "expand"
locks = "nothing: the index is built while others write"
concurrently = True

_ORDER = "(due_at - CASE WHEN kind IN ('comment', 'decision', 'request') THEN 3600 ELSE 0 END)"


def upgrade(op: Operations) -> None:
    """Build the index in place of the earlier one."""
    indexes.build(op, "ix_notices_order", "notices", ["sent_at", sa.text(_ORDER)])
    concurrent = op.get_context().dialect.name == "postgresql"
    op.drop_index("ix_notices_sent_at_due_at", "notices", if_exists=True, postgresql_concurrently=concurrent)
