"""An index of an entity's members by the name that it sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from corpid.stores.sql.migrations import indexes

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0049"
phase = "expand"
locks = "nothing: the index is built while others write"
concurrently = True

_NAME = "lower(substr(coalesce(nullif(name, ''), nullif(person_full_name, ''), nullif(email, ''), person_name_key), 1, 100))"


def upgrade(op: Operations) -> None:
    """Build the index if it is not there yet."""
    indexes.build(op, "ix_memberships_shown_full_name", "memberships", ["entity_id", sa.text(_NAME), "membership_id"])
