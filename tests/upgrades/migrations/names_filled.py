"""Names for sorting are filled in."""

from __future__ import annotations

from corpid.stores.sql.migration import Backfill

revision = "9003"
phase = "fill"
locks = "a thousand rows of users at a time"

fill = Backfill(
    table="users",
    key="user_id",
    statement="""
        UPDATE users SET sort_name = lower(name)
        WHERE user_id > :after AND user_id <= :end AND sort_name IS NULL
    """,
    rows_per_second=20_000,
)
