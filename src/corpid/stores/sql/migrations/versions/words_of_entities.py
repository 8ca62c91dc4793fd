"""Words of the entities that were there before."""

from __future__ import annotations

from corpid.stores.sql.migrations import words

revision = "0044"
phase = "fill"
locks = "a thousand rows of entities at a time"

fill = words.fill("entities", ("entity_id",), ("entity_id", "registration_number", "name"), rows_per_second=1_000)
