"""The full indexes of the audit by actor and action are dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0025"
phase = "contract"
locks = "nothing: the indexes are dropped beside the writers"
concurrently = True


def upgrade(op: Operations) -> None:
    """Drop what only the version before reads, and every sign-in writes."""
    concurrent = op.get_context().dialect.name == "postgresql"
    for column in ("actor", "action"):
        op.drop_index(f"ix_audit_{column}", "audit", if_exists=True, postgresql_concurrently=concurrent)
