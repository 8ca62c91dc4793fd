"""An index for a person's own sign-ins in the audit table."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

phase = "expand"
locks = "nothing: the index is built beside the writers"
concurrently = True

_SIGN_INS = "action = 'sign_in.complete'"


def upgrade() -> None:
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
