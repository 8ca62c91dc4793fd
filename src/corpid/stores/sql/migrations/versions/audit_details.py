"""Members before and after in the audit, and erasable details."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0008"
phase = "expand"
locks = "the table audit against readers and writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
_SQLITE = """
CREATE TRIGGER audit_details_refuses_{verb} BEFORE {verb} ON audit_details
BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END
"""
# The function is that of the table audit.
_POSTGRESQL = """
CREATE TRIGGER audit_details_refuses BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_details
FOR EACH STATEMENT EXECUTE FUNCTION audit_refuses()
"""
_APPEND_ONLY = {"sqlite": [_SQLITE.format(verb=verb) for verb in ("UPDATE", "DELETE")], "postgresql": [_POSTGRESQL]}


def upgrade(op: Operations) -> None:
    """Add three columns and a table.

    The previous version's servers write none of them; what they write has its address in the row itself.
    """
    for name in ("other_entity_id", "members", "digest"):
        op.add_column("audit", sa.Column(name, _TEXT, nullable=False, server_default=""))
    op.create_table(
        "audit_details",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        *(sa.Column(name, _TEXT, nullable=False) for name in ("salt", "detail")),
        sa.PrimaryKeyConstraint("number", name="pk_audit_details"),
    )
    for statement in _APPEND_ONLY[op.get_context().dialect.name]:
        op.execute(statement)
