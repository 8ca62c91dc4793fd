"""Kinds of columns, and what tables have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

if TYPE_CHECKING:
    from sqlalchemy.sql.schema import SchemaItem

METADATA: Final = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

TEXT: Final = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
"""compared and sorted byte by byte, whatever the order that a database was made with"""


def text(name: str, *references: SchemaItem, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, TEXT, *references, nullable=null)


def key(name: str, *references: SchemaItem) -> sa.Column[str]:
    """A text of the primary key."""
    return sa.Column(name, TEXT, *references, primary_key=True, nullable=False)


def integer(name: str, *, null: bool = False, index: bool = False) -> sa.Column[int]:
    """A whole number of 64 bits."""
    return sa.Column(name, sa.BigInteger, nullable=null, index=index)


def later(name: str, default: str) -> sa.Column[str]:
    """A column that the previous version does not know or write."""
    return sa.Column(name, TEXT, nullable=False, server_default=default)


def later_flag(name: str) -> sa.Column[bool]:
    """A flag that the previous version does not know or write."""
    return sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false())


def later_moment(name: str) -> sa.Column[int]:
    """A moment that the previous version does not know or write."""
    return sa.Column(name, sa.BigInteger, nullable=False, server_default="0")


def source() -> sa.Column[str]:
    """The actor that wrote a record; of a user, that made it (D65)."""
    return later("source", "")


def flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False)


def foreign_key(target: str) -> sa.ForeignKey:
    """A reference; the row ends with what it refers to."""
    return sa.ForeignKey(target, ondelete="CASCADE")


def table(name: str, *items: SchemaItem) -> sa.Table:
    """A table whose rows are stored in the primary key's tree.

    The look-ups of a request are one descent.
    """
    return sa.Table(name, METADATA, *items, sqlite_with_rowid=False)


def membership() -> sa.ForeignKeyConstraint:
    """Roles end with the membership they belong to."""
    return sa.ForeignKeyConstraint(
        ["user_id", "entity_id"], ["memberships.user_id", "memberships.entity_id"], ondelete="CASCADE"
    )


def dated() -> tuple[SchemaItem, ...]:
    """The columns that every role and grant has."""
    return (
        key("role"), key("sub_entity"), key("ref"),
        text("start_date"), text("end_date"), text("parameters"),
    )  # fmt: skip


def partial(name: str, *columns: str, rows: str, unique: bool = False) -> sa.Index:
    """An index of some rows.

    Declared for SQLite only: PostgreSQL's declaration would load its dialect. `postgresql_schema` adds it.
    """
    return sa.Index(name, *columns, unique=unique, sqlite_where=sa.text(rows))
