"""Indexes of an entity's members, roles and sign-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from corpid.stores.sql.migrations import indexes

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0045"
phase = "expand"
locks = "nothing: the indexes are built while others write"
concurrently = True

_ROLES = ("entity_id", "role", "service_id", "user_id", "sub_entity", "ref")
_SIGN_INS = "action = 'sign_in.complete'"
_NAME = "lower(substr(coalesce(nullif(name, ''), nullif(person_full_name, ''), nullif(email, ''), person_name_key), 1, 100))"


def upgrade(op: Operations) -> None:
    """Build the indexes that are not there yet."""
    indexes.build(op, "ix_assignments_holders", "assignments", ["entity_id", "service_id", "user_id"])
    indexes.build(op, "ix_assignments_roles", "assignments", _ROLES)
    indexes.build(op, "ix_audit_sign_ins_for", "audit", ["actor", "entity_id", "number"], where=_SIGN_INS)
    indexes.build(op, "ix_memberships_shown_full_name", "memberships", ["entity_id", sa.text(_NAME), "membership_id"])
