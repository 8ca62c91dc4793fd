"""Jobs: long work with its progress and result (docs/decisions/0042)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0046"
phase = "expand"
locks = "nothing: the table is new"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
_RUNNING = sa.text("event = 'start'")


def upgrade(op: Operations) -> None:
    """Add a table that the previous version's servers do not use."""
    op.create_table(
        "jobs",
        sa.Column("job_id", _TEXT, nullable=False),
        sa.Column("kind", _TEXT, nullable=False),
        sa.Column("actor", _TEXT, nullable=False),
        sa.Column("process_id", _TEXT, nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.Column("event", _TEXT, nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=False),
        sa.Column("done", sa.BigInteger(), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.Column("result", _TEXT, nullable=False),
        sa.PrimaryKeyConstraint("job_id", name="pk_jobs"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_jobs_running", "jobs", ["kind"], unique=True, sqlite_where=_RUNNING, postgresql_where=_RUNNING)
