"""Words of people, entities and members, by which they are found (D83)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from corpid.stores.sql.triggers import write_word_triggers

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0041"
phase = "expand"
locks = "the tables users, entities and memberships against readers and writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
_WORDS = (
    ("user_words", ("word", "user_id"), ("user_id", "word"), "users", ("user_id",)),
    ("entity_words", ("word", "entity_id"), ("entity_id", "word"), "entities", ("entity_id",)),
    (
        "member_words",
        ("entity_id", "word", "user_id"),
        ("user_id", "entity_id", "word"),
        "memberships",
        ("user_id", "entity_id"),
    ),
)
"""table, its columns, those of its index, and the table and columns that it refers to"""
_SEARCHED = {
    "user": ("users", ("user_name", "name", "email")),
    "entity": ("entities", ("entity_id", "registration_number", "name")),
    "membership": ("memberships", ("user_name", "name", "email", "department", "job_title")),
}


def upgrade(op: Operations) -> None:
    """Add columns, tables and triggers.

    The previous version's servers write no words; a trigger notes the records that they write.
    """
    for table in ("users", "entities", "memberships"):
        op.add_column(table, sa.Column("words", _TEXT, nullable=False, server_default="{}"))
    for name, columns, indexed, referred, keys in _WORDS:
        op.create_table(
            name,
            *(sa.Column(each, _TEXT, nullable=False) for each in columns),
            sa.ForeignKeyConstraint(
                keys, [f"{referred}.{each}" for each in keys], name=f"fk_{name}_{'_'.join(keys)}", ondelete="CASCADE"
            ),
            sa.PrimaryKeyConstraint(*columns, name=f"pk_{name}"),
            sqlite_with_rowid=False,
        )
        op.create_index(f"ix_{name}_{'_'.join(indexed)}", name, list(indexed))
    op.create_table(
        "outdated_words",
        *(sa.Column(each, _TEXT, nullable=False) for each in ("record", "user_id", "entity_id")),
        sa.PrimaryKeyConstraint("record", "user_id", "entity_id", name="pk_outdated_words"),
        sqlite_with_rowid=False,
    )
    for statement in write_word_triggers(op.get_context().dialect.name, _SEARCHED):
        op.execute(statement)
