"""Passkeys, recovery codes, links that lead to setting factors.

What sessions were begun with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0003"
phase = "expand"
locks = "the table of sessions, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def _texts(*names: str) -> tuple[sa.Column[str], ...]:
    return tuple(sa.Column(name, _TEXT, nullable=False) for name in names)


def _integers(*names: str) -> tuple[sa.Column[int], ...]:
    return tuple(sa.Column(name, sa.BigInteger(), nullable=False) for name in names)


def _of_a_user(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["user_id"], ["users.user_id"], name=f"fk_{table}_user_id", ondelete="CASCADE")


def upgrade(op: Operations) -> None:
    """Add three tables, and columns to the sessions."""
    op.add_column("sessions", sa.Column("purpose", _TEXT, nullable=False, server_default="sign_in"))
    op.add_column("sessions", sa.Column("device", _TEXT, nullable=False, server_default=""))
    op.add_column("sessions", sa.Column("seen_at", sa.BigInteger(), nullable=False, server_default="0"))
    op.create_table(
        "passkeys",
        *_texts("credential_id", "user_id", "public_key"),
        *_integers("sign_count"),
        *_texts("name", "aaguid"),
        sa.Column("synced", sa.Boolean(), nullable=False),
        *_texts("transports"),
        *_integers("created_at", "used_at"),
        _of_a_user("passkeys"),
        sa.PrimaryKeyConstraint("credential_id", name="pk_passkeys"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_passkeys_user_id", "passkeys", ["user_id"])
    op.create_table(
        "recovery_codes",
        *_texts("user_id", "code_hash"),
        _of_a_user("recovery_codes"),
        sa.PrimaryKeyConstraint("user_id", "code_hash", name="pk_recovery_codes"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "links",
        *_texts("link_hash", "purpose", "user_id"),
        *_integers("created_at", "expires_at"),
        *_texts("factors"),
        _of_a_user("links"),
        sa.PrimaryKeyConstraint("link_hash", name="pk_links"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_links_user_id", "links", ["user_id"])
