"""Words of services and clients, by which they are found (D83)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from corpid.stores.sql.triggers import write_word_triggers

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0053"
phase = "expand"
locks = "the tables services and clients against readers and writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
_SEARCHED = {"service": ("services", ("service_id", "name")), "client": ("clients", ("client_id", "name"))}


def upgrade(op: Operations) -> None:
    """Add columns, tables and triggers, as for the words of people."""
    for record, (table, (key, _)) in _SEARCHED.items():
        op.add_column(table, sa.Column("words", _TEXT, nullable=False, server_default="{}"))
        op.create_table(
            f"{record}_words",
            sa.Column("word", _TEXT, nullable=False),
            sa.Column(key, _TEXT, nullable=False),
            sa.ForeignKeyConstraint([key], [f"{table}.{key}"], name=f"fk_{record}_words_{key}", ondelete="CASCADE"),
            sa.PrimaryKeyConstraint("word", key, name=f"pk_{record}_words"),
            sqlite_with_rowid=False,
        )
        op.create_index(f"ix_{record}_words_{key}_word", f"{record}_words", [key, "word"])
    for statement in write_word_triggers(op.get_context().dialect.name, _SEARCHED):
        op.execute(statement)
