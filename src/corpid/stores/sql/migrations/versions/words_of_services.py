"""Words of the services that were there before."""

from __future__ import annotations

from corpid.rules.directory.records import Service
from corpid.stores.sql.migrations import words

revision = "0049"
phase = "fill"
locks = "a thousand rows of services at a time"

fill = words.fill(Service, "services", ("service_id",), rows_per_second=1_000)
