"""Identifiers of the memberships that were there before."""

from __future__ import annotations

from corpid.stores.sql.migration import Backfill

revision = "0019"
phase = "fill"
locks = "a thousand rows of memberships at a time"

fill = Backfill(
    table="memberships",
    key="user_id",
    statement="""
        UPDATE memberships SET membership_id = ''
        WHERE user_id > :after AND user_id <= :end AND membership_id = ''
    """,
    rows_per_second=20_000,
)
"""A trigger of the migration 0017 gives each of these rows its identifier."""
