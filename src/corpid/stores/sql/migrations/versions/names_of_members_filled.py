"""Names of the members who were there before."""

from __future__ import annotations

from corpid.stores.sql.migration import Backfill

revision = "0051"
phase = "fill"
locks = "a thousand rows of memberships at a time"

fill = Backfill(
    table="memberships",
    key="user_id",
    statement="""
        UPDATE memberships
        SET person_full_name = coalesce((SELECT name FROM users WHERE users.user_id = memberships.user_id), '')
        WHERE user_id > :after AND user_id <= :end AND person_full_name = ''
    """,
    rows_per_second=10_000,
)
