"""User names and addresses of the memberships that were there before."""

from __future__ import annotations

from corpid.stores.sql.migration import Backfill

revision = "0023"
phase = "fill"
locks = "a thousand rows of memberships at a time"

fill = Backfill(
    table="memberships",
    key="user_id",
    statement="""
        UPDATE memberships SET person_name_key = ''
        WHERE user_id > :after AND user_id <= :end AND person_name_key = ''
    """,
    rows_per_second=20_000,
)
"""A trigger of the migration 0021 copies the person's."""
