"""Grants that a third party accepts before they give anything (D56)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0012"
phase = "expand"
locks = "the table third_party_grants against readers and writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    """Add a column; the grants that there are count as accepted.

    The previous version's servers neither read nor write it: to them an offer is a grant.
    """
    op.add_column("third_party_grants", sa.Column("state", _TEXT, nullable=False, server_default="accepted"))
