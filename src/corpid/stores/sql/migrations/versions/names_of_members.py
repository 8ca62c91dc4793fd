"""A copy of the person's name with each membership."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from corpid.stores.sql.triggers import SQLITE, write_person_triggers

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0048"
phase = "expand"
locks = "the tables users and memberships against readers and writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
_COPIES = {"person_name_key": "user_name_key", "person_email": "email", "person_full_name": "name"}
_OF_SQLITE = ("memberships_person_after_INSERT", "memberships_person_after_UPDATE", "users_person_of_members")


def upgrade(op: Operations) -> None:
    """Add the column, which triggers fill, also for the previous version's servers."""
    op.add_column("memberships", sa.Column("person_full_name", _TEXT, nullable=False, server_default=""))
    dialect = op.get_context().dialect.name
    for each in _OF_SQLITE if dialect == SQLITE else ():
        op.execute(f"DROP TRIGGER {each}")
    for statement in write_person_triggers(dialect, _COPIES):
        op.execute(statement)
