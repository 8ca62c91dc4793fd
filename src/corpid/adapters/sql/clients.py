"""Registered clients and the key sets that were fetched for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.adapters.sql.codecs import CLIENTS, record_codec
from corpid.adapters.sql.kinds import columns
from corpid.adapters.sql.statements import upsert
from corpid.adapters.sql.tables import clients, fetched_key_sets
from corpid.ports import FetchedKeySet

if TYPE_CHECKING:
    from corpid.adapters.sql.audit import SqlAudit
    from corpid.adapters.sql.statements import Database
    from corpid.ports import AuditEvent
    from corpid.protocol.records import Client

_FETCHED: Final = record_codec(FetchedKeySet)


class SqlClients:
    """A ports.Clients. Clients are written through Directory.write."""

    def __init__(self, database: Database, audit: SqlAudit) -> None:
        self._database: Final = database
        self._audit: Final = audit
        records = sa.select(*columns(clients, CLIENTS))
        fetched = fetched_key_sets.c.client_id == sa.bindparam("client_id")
        self._get: Final = database.prepare(records.where(clients.c.client_id == sa.bindparam("client_id")))
        self._all: Final = database.prepare(records.order_by(clients.c.client_id))
        self._fetched: Final = database.prepare(sa.select(*columns(fetched_key_sets, _FETCHED)).where(fetched))
        self._keep: Final = database.prepare(upsert(fetched_key_sets, ("client_id", *_FETCHED.written)))
        self._drop: Final = database.prepare(sa.delete(fetched_key_sets).where(fetched))

    async def get(self, client_id: str) -> Client | None:
        """See ports.Clients."""
        row = await self._database.row(self._get, {"client_id": client_id})
        return None if row is None else CLIENTS.decode(row)

    async def all(self) -> list[Client]:
        """See ports.Clients. By identifier."""
        return [CLIENTS.decode(row) for row in await self._database.rows(self._all, {})]

    async def fetched_key_set(self, client_id: str) -> FetchedKeySet | None:
        """See ports.Clients."""
        row = await self._database.row(self._fetched, {"client_id": client_id})
        return None if row is None else _FETCHED.decode(row)

    async def keep_fetched_key_set(self, client_id: str, fetched: FetchedKeySet) -> None:
        """See ports.Clients. Raises MissingReference for a client that is gone."""
        async with self._database.transaction():
            await self._database.run(self._keep, {"client_id": client_id} | _FETCHED.encode(fetched))

    async def drop_fetched_key_set(self, client_id: str, event: AuditEvent) -> None:
        """See ports.Clients."""
        async with self._database.transaction():
            await self._database.run(self._drop, {"client_id": client_id})
            await self._audit.record(event)
