"""Indexes of members of an entity, and of due invitations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.stores.sql.migrations import indexes

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0018"
phase = "expand"
locks = "nothing: the indexes are built while others write"
concurrently = True

_DUE = "invited AND (invitation_sent_at = 0 OR invitation_sent_at < -2)"
_INDEXES = (
    ("ix_memberships_membership_id", ("membership_id",), True, "membership_id <> ''"),
    ("ix_memberships_user_name", ("entity_id", "user_name_key"), True, "user_name_key <> ''"),
    ("ix_memberships_external_id", ("entity_id", "external_id"), True, "external_id <> ''"),
    ("ix_memberships_entity_id_membership_id", ("entity_id", "membership_id"), False, None),
    ("ix_memberships_due", ("invitation_sent_at", "membership_id"), False, _DUE),
)
"""name, columns, whether it is unique, and the rows that it has"""


def upgrade(op: Operations) -> None:
    """Build each index that is not there yet."""
    for name, columns, unique, condition in _INDEXES:
        indexes.build(op, name, "memberships", columns, where=condition, unique=unique)
