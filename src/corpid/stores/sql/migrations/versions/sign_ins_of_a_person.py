"""An index for a person's own sign-ins in the audit table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0004"
phase = "expand"
locks = "nothing: the index is built beside the writers"
concurrently = True

_SIGN_INS = "action = 'sign_in.complete'"


def upgrade(op: Operations) -> None:
    """Build the index, after removing what a failed attempt left."""
    name, concurrent = "ix_audit_sign_ins", op.get_context().dialect.name == "postgresql"
    op.drop_index(name, "audit", if_exists=True, postgresql_concurrently=concurrent)
    op.create_index(
        name,
        "audit",
        ["actor", "number"],
        postgresql_where=sa.text(_SIGN_INS),
        sqlite_where=sa.text(_SIGN_INS),
        postgresql_concurrently=concurrent,
    )
