"""Words of the clients that were there before."""

from __future__ import annotations

from corpid.rules.oauth.records import Client
from corpid.stores.sql.migrations import words

revision = "0050"
phase = "fill"
locks = "a thousand rows of clients at a time"

fill = words.fill(Client, "clients", ("client_id",), rows_per_second=1_000)
