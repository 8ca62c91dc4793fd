"""Words of the people who were there before."""

from __future__ import annotations

from corpid.stores.sql.migrations import words

revision = "0043"
phase = "fill"
locks = "a thousand rows of users at a time"

fill = words.fill("users", ("user_id",), ("user_name", "name", "email"), rows_per_second=1_000)
"""A trigger of the migration 0041 writes those of their memberships, too."""
