"""Indexes of the audit by actor and action, without completed sign-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.stores.sql.migrations import indexes

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0024"
phase = "expand"
locks = "nothing: the indexes are built and dropped while others write"
concurrently = True

_NO_COMPLETED_SIGN_IN = "action <> 'sign_in.complete'"


def upgrade(op: Operations) -> None:
    """Build each missing index, then drop the full one it replaces.

    Servers of the version before go on: their lists by actor or action alone read more of the audit until they are
    replaced, and give the same entries.
    """
    for column in ("actor", "action"):
        indexes.build(op, f"ix_audit_{column}_others", "audit", [column, "number"], where=_NO_COMPLETED_SIGN_IN)
        indexes.drop(op, f"ix_audit_{column}", "audit")
