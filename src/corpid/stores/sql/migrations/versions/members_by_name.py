"""Indexes of an entity's members by user name and address."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from corpid.stores.sql.migrations import indexes

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0022"
phase = "expand"
locks = "nothing: the indexes are built while others write"
concurrently = True

_NAME = "coalesce(nullif(user_name_key, ''), person_name_key)"
_EMAIL = "lower(coalesce(nullif(email, ''), person_email))"
_INDEXES = (
    ("ix_memberships_person", ("entity_id", "person_name_key"), None),
    ("ix_memberships_shown_name", ("entity_id", sa.text(_NAME), "membership_id"), None),
    ("ix_memberships_shown_email", ("entity_id", sa.text(_EMAIL), "membership_id"), None),
    ("ix_memberships_invited", ("entity_id", "membership_id"), "invited"),
)
"""name, columns, and the rows that it has"""


def upgrade(op: Operations) -> None:
    """Build each index that is not there yet."""
    for name, columns, condition in _INDEXES:
        indexes.build(op, name, "memberships", columns, where=condition)
