"""An index for the last sign-in of each person for an entity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.stores.sql.migrations import indexes

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0047"
phase = "expand"
locks = "nothing: the index is built while others write"
concurrently = True

_SIGN_INS = "action = 'sign_in.complete'"


def upgrade(op: Operations) -> None:
    """Build the index if it is not there yet."""
    indexes.build(op, "ix_audit_sign_ins_for", "audit", ["actor", "entity_id", "number"], where=_SIGN_INS)
