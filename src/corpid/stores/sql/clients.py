"""Clients of both kinds, fetched key sets, and deprecated usage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic

import msgspec
import sqlalchemy as sa

from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.rules.oauth.deprecated_usage import UseCount
from corpid.rules.oauth.records import Client, FetchedKeySet
from corpid.stores.sql.columns import Codec, T, columns, record_codec
from corpid.stores.sql.statements import insert, upsert
from corpid.stores.sql.tables import api_client_key_sets, api_clients, clients, fetched_key_sets, generation_use

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.rules.audit_records import AuditEvent
    from corpid.stores.sql.audit import Audit
    from corpid.stores.sql.statements import Database


class _FormerClient(msgspec.Struct, frozen=True):
    """The renamed member, under its name in the previous version.

    That version reads and writes it.
    """

    token_endpoint_audience_until: str | None = None


def _client_text(client: Client) -> str:
    """A client's record.

    A renamed value is written under both names, for nodes of the previous version.
    """
    former = {"token_endpoint_audience_until": client.endpoint_audience_until}
    return msgspec.json.encode({**msgspec.to_builtins(client), **former}).decode()


_OF_CLIENTS: Final = ("client_id", "name", "enabled", "record")
"""columns of clients of either kind"""


def _clients() -> Codec[Client]:
    decoder, former = msgspec.json.Decoder(Client), msgspec.json.Decoder(_FormerClient)

    def decode(row: Sequence[Any]) -> Client:
        client, until = decoder.decode(row[0]), former.decode(row[0]).token_endpoint_audience_until
        return client if until is None else msgspec.structs.replace(client, endpoint_audience_until=until)

    return Codec(
        columns=("record",),
        written=_OF_CLIENTS,
        encode=lambda client: _client_row(client, _client_text(client)),
        decode=decode,
    )


def _api_clients() -> Codec[RegisteredApiClient]:
    decoder = msgspec.json.Decoder(RegisteredApiClient)
    return Codec(
        columns=("record",),
        written=_OF_CLIENTS,
        encode=lambda client: _client_row(client, msgspec.json.encode(client).decode()),
        decode=lambda row: decoder.decode(row[0]),
    )


def _client_row(client: Client | RegisteredApiClient, record: str) -> dict[str, Any]:
    return {"client_id": client.client_id, "name": client.name, "enabled": client.enabled, "record": record}


CLIENTS: Final = _clients()
API_CLIENTS: Final = _api_clients()
_FETCHED: Final = record_codec(FetchedKeySet)


class _Registered(Generic[T]):
    """The clients of one kind. They are written through Directory.write."""

    def __init__(self, database: Database, audit: Audit, codec: Codec[T], table: sa.Table, key_sets: sa.Table) -> None:
        self._database: Final = database
        self._audit: Final = audit
        self._codec: Final = codec
        records = sa.select(*columns(table, codec))
        fetched = key_sets.c.client_id == sa.bindparam("client_id")
        self._get: Final = database.prepare(lambda: records.where(table.c.client_id == sa.bindparam("client_id")))
        self._all: Final = database.prepare(lambda: records.order_by(table.c.client_id))
        self._fetched: Final = database.prepare(lambda: sa.select(*columns(key_sets, _FETCHED)).where(fetched))
        self._store: Final = database.prepare(lambda: upsert(key_sets, ("client_id", *_FETCHED.written)))
        self._drop: Final = database.prepare(lambda: sa.delete(key_sets).where(fetched))

    async def get(self, client_id: str) -> T | None:
        row = await self._database.row(self._get, {"client_id": client_id})
        return None if row is None else self._codec.decode(row)

    async def list_all(self) -> list[T]:
        """In the order of identifiers."""
        return [self._codec.decode(row) for row in await self._database.rows(self._all, {})]

    async def fetched_key_set(self, client_id: str) -> FetchedKeySet | None:
        row = await self._database.row(self._fetched, {"client_id": client_id})
        return None if row is None else _FETCHED.decode(row)

    async def keep_fetched_key_set(self, client_id: str, fetched: FetchedKeySet) -> None:
        """Raises MissingReference for a client that is gone."""
        async with self._database.transaction():
            await self._database.run(self._store, {"client_id": client_id} | _FETCHED.encode(fetched))

    async def drop_fetched_key_set(self, client_id: str, event: AuditEvent) -> None:
        async with self._database.transaction():
            was = await self.fetched_key_set(client_id)
            await self._database.run(self._drop, {"client_id": client_id})
            await self._audit.record_change(event, was, None)


class Clients(_Registered[Client]):
    """Relying parties. They are written through Directory.write."""

    def __init__(self, database: Database, audit: Audit) -> None:
        super().__init__(database, audit, CLIENTS, clients, fetched_key_sets)
        key, bounds = clients.c.client_id, [sa.bindparam(name, type_=sa.Text) for name in ("first", "until")]
        self._named: Final = database.prepare(
            lambda: (
                sa.select(*columns(clients, CLIENTS))
                .where(key >= bounds[0], key < bounds[1])
                .order_by(key)
                .limit(sa.bindparam("limit", type_=sa.Integer))
            )
        )

    async def named(self, *, first: str, until: str, limit: int) -> list[Client]:
        """Clients by identifier, byte by byte: from `first`, before `until`."""
        rows = await self._database.rows(self._named, {"first": first, "until": until, "limit": limit})
        return [self._codec.decode(row) for row in rows]


class ApiClients(_Registered[RegisteredApiClient]):
    """Clients of the admin API (D59); they are written through Directory.write."""

    def __init__(self, database: Database, audit: Audit) -> None:
        super().__init__(database, audit, API_CLIENTS, api_clients, api_client_key_sets)


_COUNTS: Final = record_codec(UseCount)
_KEYS: Final = tuple(column.name for column in generation_use.primary_key)


class Usage:
    """Counters of clients' use of deprecated things, without their requests."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database
        self._add: Final = database.prepare(_addition)
        self._all: Final = database.prepare(
            lambda: sa.select(*columns(generation_use, _COUNTS)).order_by(*generation_use.primary_key)
        )

    async def add(self, counts: Sequence[UseCount]) -> None:
        """Add to the counters, in one short transaction.

        In the order of keys, so that processes never deadlock. The later moment of each stays. Counts of a client that
        does not exist are dropped.
        """
        async with self._database.transaction():
            for one in sorted(counts, key=lambda each: (each.client_id, each.generation, each.habit)):
                await self._database.run(self._add, _COUNTS.encode(one))

    async def list_all(self) -> list[UseCount]:
        """In the order of client, generation and habit."""
        return [_COUNTS.decode(row) for row in await self._database.rows(self._all, {})]


def _addition() -> sa.Executable:
    """One row of a client that exists is inserted or added to.

    What a client that is gone counted is no row.
    """
    values = [sa.bindparam(name, type_=generation_use.c[name].type) for name in _COUNTS.written]
    known = sa.select(*values).where(clients.c.client_id == sa.bindparam("client_id"))
    statement = insert(generation_use).from_select(_COUNTS.written, known)
    stored, new = generation_use.c, statement.excluded
    return statement.on_conflict_do_update(
        index_elements=_KEYS,
        set_={
            "count": stored["count"] + new["count"],
            "last_at": sa.case((stored.last_at > new.last_at, stored.last_at), else_=new.last_at),
        },
    )
