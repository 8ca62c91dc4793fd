"""Every user has a name for sorting."""

from __future__ import annotations

from alembic import op

revision = "9004"
down_revision = "9003"
branch_labels = None
depends_on = None

phase = "contract"
locks = "the table users, while it is read"

_POSTGRESQL = "ALTER TABLE users ALTER COLUMN sort_name SET DEFAULT '', ALTER COLUMN sort_name SET NOT NULL"
# SQLite can say so only to a new table.
_STATEMENTS = {"sqlite": (), "postgresql": (_POSTGRESQL,)}


def upgrade() -> None:
    """From now on a user without one is refused."""
    for statement in _STATEMENTS[op.get_context().dialect.name]:
        op.execute(statement)
