"""Every user has a name for sorting."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "9004"
phase = "contract"
locks = "the table users, while it is read"

_POSTGRESQL = "ALTER TABLE users ALTER COLUMN sort_name SET DEFAULT '', ALTER COLUMN sort_name SET NOT NULL"
# SQLite can say so only to a new table.
_STATEMENTS = {"sqlite": (), "postgresql": (_POSTGRESQL,)}


def upgrade(op: Operations) -> None:
    """From now on a user without one is refused."""
    for statement in _STATEMENTS[op.get_context().dialect.name]:
        op.execute(statement)
