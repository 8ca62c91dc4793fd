"""Words of the clients that were there before."""

from __future__ import annotations

from corpid.stores.sql.migrations import words

revision = "0055"
phase = "fill"
locks = "a thousand rows of clients at a time"

fill = words.fill("clients", ("client_id",), ("client_id", "name"), rows_per_second=1_000)
