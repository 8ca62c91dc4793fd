"""Words of the services that were there before."""

from __future__ import annotations

from corpid.stores.sql.migrations import words

revision = "0054"
phase = "fill"
locks = "a thousand rows of services at a time"

fill = words.fill("services", ("service_id",), ("service_id", "name"), rows_per_second=1_000)
