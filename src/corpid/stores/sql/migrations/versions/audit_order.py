"""A lock of audit writers, so that readers by number miss none."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0005"
phase = "expand"
locks = "the table audit against writers, for a moment"

# The number is audit.WRITING_LOCK. The trigger fires before the first row takes its number.
_POSTGRESQL = (
    """
CREATE FUNCTION audit_announces() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_advisory_xact_lock_shared(74145940392261); RETURN NULL; END $$
""",
    """
CREATE TRIGGER audit_announces BEFORE INSERT ON audit
FOR EACH STATEMENT EXECUTE FUNCTION audit_announces()
""",
)
# SQLite has one writer at a time: numbers become visible in their order.
_ANNOUNCED = {"sqlite": (), "postgresql": _POSTGRESQL}


def upgrade(op: Operations) -> None:
    """Add a trigger on PostgreSQL, also run for the previous version's servers."""
    for statement in _ANNOUNCED[op.get_context().dialect.name]:
        op.execute(statement)
