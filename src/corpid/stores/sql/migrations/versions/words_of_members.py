"""Words of the members who were there before."""

from __future__ import annotations

from corpid.stores.sql.migrations import words

revision = "0045"
phase = "fill"
locks = "a thousand rows of memberships at a time"

fill = words.fill(
    "memberships",
    ("user_id", "entity_id"),
    ("user_name", "name", "email", "department", "job_title"),
    rows_per_second=1_000,
)
