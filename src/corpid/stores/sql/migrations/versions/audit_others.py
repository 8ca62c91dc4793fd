"""Indexes of the audit by actor and action, without completed sign-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0024"
phase = "expand"
locks = "nothing: the indexes are built beside the writers"
concurrently = True

_NO_COMPLETED_SIGN_IN = sa.text("action <> 'sign_in.complete'")
_IS_WHOLE = sa.text("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:name)")


def upgrade(op: Operations) -> None:
    """Build each index that is not there yet.

    What a failed attempt left of it is removed. Servers of the version before go on with the full indexes, which stay
    until the contraction.
    """
    concurrent = op.get_context().dialect.name == "postgresql"
    for column in ("actor", "action"):
        name = f"ix_audit_{column}_others"
        if concurrent and op.get_bind().scalar(_IS_WHOLE, {"name": name}):
            continue
        op.drop_index(name, "audit", if_exists=True, postgresql_concurrently=concurrent)
        op.create_index(
            name,
            "audit",
            [column, "number"],
            postgresql_where=_NO_COMPLETED_SIGN_IN,
            sqlite_where=_NO_COMPLETED_SIGN_IN,
            postgresql_concurrently=concurrent,
        )
