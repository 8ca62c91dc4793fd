"""Seals of the audit, and digests of its entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0014"
phase = "expand"
locks = "nothing: the tables are new"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
_SQLITE = """
CREATE TRIGGER {table}_refuses_{verb} BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END
"""
# The function is that of the table audit.
_POSTGRESQL = """
CREATE TRIGGER {table}_refuses BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION audit_refuses()
"""
_TABLES = ("audit_seals", "audit_digests")


def upgrade(op: Operations) -> None:
    """Add two tables that the previous version's servers do not use."""
    op.create_table(
        "audit_seals",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("at", "last")),
        *(sa.Column(name, _TEXT, nullable=False) for name in ("digest", "seal")),
        sa.PrimaryKeyConstraint("number", name="pk_audit_seals"),
        sa.UniqueConstraint("last", name="uq_audit_seals_last"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "audit_digests",
        sa.Column("seal", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("retention", _TEXT, nullable=False),
        sa.Column("latest", sa.BigInteger(), nullable=False),
        sa.Column("digests", _TEXT, nullable=False),
        sa.PrimaryKeyConstraint("seal", "retention", name="pk_audit_digests"),
    )
    for table in _TABLES:
        for statement in _append_only(op.get_context().dialect.name, table):
            op.execute(statement)


def _append_only(dialect: str, table: str) -> list[str]:
    if dialect == "sqlite":
        return [_SQLITE.format(table=table, verb=verb) for verb in ("UPDATE", "DELETE")]
    return [_POSTGRESQL.format(table=table)]
