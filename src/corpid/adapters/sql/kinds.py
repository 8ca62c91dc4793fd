"""Which type of record lives in which table, in the order in which they refer to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import sqlalchemy as sa

from corpid.adapters.sql import tables
from corpid.adapters.sql.codecs import CLIENTS, ENTITIES, USERS, Codec, record_codec, sealed_codec
from corpid.adapters.sql.statements import upsert
from corpid.directory.records import (
    Assignment,
    Credentials,
    Entity,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.protocol.records import Client

if TYPE_CHECKING:
    from corpid.adapters.sealing import Sealer
    from corpid.adapters.sql.statements import Database, Prepared

PAGE: Final = 500
"""rows that a scan reads at a time"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A type of record, its table, and its statements."""

    table: sa.Table
    codec: Codec[Any]
    keys: tuple[str, ...]
    rank: int
    """records refer only to kinds of a lower rank"""
    one: Prepared
    first_page: Prepared
    next_page: Prepared
    upsert: Prepared
    delete: Prepared

    def key(self, record: object) -> dict[str, str]:
        """The key columns of a record and their values."""
        return {name: getattr(record, name) for name in self.keys}


Kinds: TypeAlias = dict[type, Kind]


def kinds(database: Database, sealer: Sealer) -> Kinds:
    """Every kind, prepared for a database. Raises nothing; their codecs raise SealingError."""
    secret = sealed_codec(record_codec(Credentials), sealer, "credentials", "user_id", "totp_secret")
    rows: tuple[tuple[type, sa.Table, Codec[Any]], ...] = (
        (Client, tables.clients, CLIENTS),
        (Entity, tables.entities, ENTITIES),
        (User, tables.users, USERS),
        (Service, tables.services, record_codec(Service)),
        (Credentials, tables.credentials, secret),
        (Membership, tables.memberships, record_codec(Membership)),
        (Assignment, tables.assignments, record_codec(Assignment)),
        (ThirdPartyGrant, tables.third_party_grants, record_codec(ThirdPartyGrant)),
        (ThirdPartyAssignment, tables.third_party_assignments, record_codec(ThirdPartyAssignment)),
    )
    return {record: _kind(database, table, codec, rank) for rank, (record, table, codec) in enumerate(rows)}


def columns(table: sa.FromClause, codec: Codec[Any]) -> list[sa.ColumnElement[Any]]:
    """The columns that a codec decodes, in its order."""
    return [table.c[name] for name in codec.columns]


def _kind(database: Database, table: sa.Table, codec: Codec[Any], rank: int) -> Kind:
    keys = tuple(column.name for column in table.primary_key)
    this = sa.and_(*(table.c[name] == sa.bindparam(name) for name in keys))
    key = sa.tuple_(*(table.c[name] for name in keys))
    after = sa.tuple_(*(sa.bindparam(name) for name in keys))
    record = sa.select(*columns(table, codec))
    page = sa.select(*columns(table, codec), *(table.c[name].label(f"key_{name}") for name in keys))
    page = page.order_by(*(table.c[name] for name in keys)).limit(sa.bindparam("limit", type_=sa.Integer))
    return Kind(
        table=table,
        codec=codec,
        keys=keys,
        rank=rank,
        one=database.prepare(record.where(this)),
        first_page=database.prepare(page),
        next_page=database.prepare(page.where(key > after)),
        upsert=database.prepare(upsert(table, codec.written, _kept(table))),
        delete=database.prepare(sa.delete(table).where(this)),
    )


def _kept(table: sa.Table) -> dict[str, Any]:
    """The last accepted TOTP step only rises: writing a person's record never makes a spent code good (D45)."""
    if table is not tables.credentials:
        return {}
    stored = table.c.totp_last_step
    new: sa.ColumnElement[int] = sa.literal_column("excluded.totp_last_step")
    return {"totp_last_step": sa.case((stored > new, stored), else_=new)}
