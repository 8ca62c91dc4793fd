"""Indexes of the audit by actor and action, without completed sign-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0024"
phase = "expand"
locks = "nothing: the indexes are built and dropped beside the writers"
concurrently = True

_NO_COMPLETED_SIGN_IN = sa.text("action <> 'sign_in.complete'")
_IS_WHOLE = sa.text("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:name)")


def upgrade(op: Operations) -> None:
    """Build each missing index, then drop the full one it replaces.

    What a failed attempt left is removed. Servers of the version before go on: their lists by actor or action alone
    read more of the audit until they are replaced, and give the same entries.
    """
    concurrent = op.get_context().dialect.name == "postgresql"
    for column in ("actor", "action"):
        name = f"ix_audit_{column}_others"
        if not (concurrent and op.get_bind().scalar(_IS_WHOLE, {"name": name})):
            op.drop_index(name, "audit", if_exists=True, postgresql_concurrently=concurrent)
            op.create_index(
                name,
                "audit",
                [column, "number"],
                postgresql_where=_NO_COMPLETED_SIGN_IN,
                sqlite_where=_NO_COMPLETED_SIGN_IN,
                postgresql_concurrently=concurrent,
            )
        op.drop_index(f"ix_audit_{column}", "audit", if_exists=True, postgresql_concurrently=concurrent)
