"""Records as rows: table and columns of each type of record."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
import sqlalchemy as sa
from msgspec.structs import replace

from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.changes import NameRefused
from corpid.rules.directory.entity_choice import search_text
from corpid.rules.directory.names import fold_text, user_name
from corpid.rules.directory.provisioning_tokens import RegisteredProvisioningToken
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    ChangeRequest,
    DeletionRequest,
    Entity,
    Membership,
    Operator,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.rules.directory.sources import UNKNOWN, Sources
from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.rules.oauth.records import Client
from corpid.stores.sql import directory_tables, tables
from corpid.stores.sql.clients import API_CLIENTS, CLIENTS
from corpid.stores.sql.codecs import Codec, columns, encrypted_codec, record_codec
from corpid.stores.sql.statements import insert, parameters, upsert

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpid.stores.encryption_at_rest import SecretCipher
    from corpid.stores.sql.statements import CompiledStatement, Database


def user_name_key(name: str) -> str:
    """The look-up key of a user name.

    Raises NameRefused with the reason in words (D51).
    """
    try:
        return user_name(name)
    except ValueError as error:
        raise NameRefused(f"{name!r}: {error}") from None


def _users() -> Codec[User]:
    codec = record_codec(User)
    return replace(
        codec,
        written=(*codec.written, "user_name_key"),
        encode=lambda user: codec.encode(user) | {"user_name_key": user_name_key(user.user_name)},
    )


def _memberships() -> Codec[Membership]:
    codec = record_codec(Membership)
    return replace(
        codec,
        written=(*codec.written, "user_name_key"),
        encode=lambda member: codec.encode(member) | {"user_name_key": fold_text(member.user_name)},
    )


def _entities() -> Codec[Entity]:
    codec = record_codec(Entity)
    return replace(
        codec,
        written=(*codec.written, "search_text"),
        encode=lambda entity: codec.encode(entity) | {"search_text": search_text(entity)},
    )


ENTITIES: Final = _entities()
USERS: Final = _users()
MEMBERSHIPS: Final = _memberships()


PAGE: Final = 500
"""rows that a scan reads at a time"""
_SOURCES: Final = ("source", "member_sources")
"""columns with the source of a record (D65); no request reads them"""
_NOBODY: Final = "{}"
_MEMBERS: Final = msgspec.json.Decoder(dict[str, str])


_TABLES: Final[Mapping[type[Any], sa.Table]] = {
    Client: tables.clients,
    Entity: directory_tables.entities,
    User: directory_tables.users,
    Service: directory_tables.services,
    Credentials: tables.credentials,
    Membership: directory_tables.memberships,
    Administrator: directory_tables.administrators,
    Operator: directory_tables.operators,
    Assignment: directory_tables.assignments,
    ThirdPartyGrant: directory_tables.third_party_grants,
    ThirdPartyAssignment: directory_tables.third_party_assignments,
    RegisteredApiClient: tables.api_clients,
    ChangeRequest: directory_tables.change_requests,
    RegisteredProvisioningToken: directory_tables.provisioning_tokens,
    DeletionRequest: directory_tables.deletion_requests,
}
"""in the order of their references; no file writes the last four, so they keep no sources"""
_CODECS: Final[Mapping[type[Any], Codec[Any]]] = {
    **{record: record_codec(record) for record in _TABLES},
    Client: CLIENTS, Entity: ENTITIES, User: USERS, Membership: MEMBERSHIPS, RegisteredApiClient: API_CLIENTS,
}  # fmt: skip


class RecordType:
    """A type of record, its table, and its statements.

    Each statement is made when it is first used. `rank`: records refer only to kinds of a lower one.
    """

    def __init__(self, database: Database, table: sa.Table, codec: Codec[Any], rank: int) -> None:
        self.table: Final = table
        self.codec: Final = codec
        self.rank: Final = rank
        self.keys: Final = tuple(column.name for column in table.primary_key)
        self._sources: Final = tuple(name for name in _SOURCES if name in table.c)
        self._prepare: Final = database.prepare

    @cached_property
    def one(self) -> CompiledStatement:
        return self._prepare(self._records().where(self._this()))

    @cached_property
    def sourced(self) -> CompiledStatement:
        """As `one`, with its sources."""
        return self._prepare(self._with_sources().where(self._this()))

    @cached_property
    def locked(self) -> CompiledStatement:
        """As `sourced`, held until the transaction ends.

        New rows that refer to it need not wait.
        """
        return self._prepare(self._with_sources().where(self._this()).with_for_update(key_share=True))

    @cached_property
    def locked_alone(self) -> CompiledStatement:
        """As `locked`, but new rows that refer to it wait."""
        return self._prepare(self._with_sources().where(self._this()).with_for_update())

    @cached_property
    def first_page(self) -> CompiledStatement:
        return self._prepare(self._page())

    @cached_property
    def next_page(self) -> CompiledStatement:
        after = sa.tuple_(*(sa.bindparam(name) for name in self.keys))
        return self._prepare(self._page().where(sa.tuple_(*(self.table.c[name] for name in self.keys)) > after))

    @cached_property
    def upsert(self) -> CompiledStatement:
        """The record alone: its sources stay."""
        return self._prepare(upsert(self.table, self.codec.written, _kept(self.table)))

    @cached_property
    def upsert_sourced(self) -> CompiledStatement:
        return self._prepare(upsert(self.table, (*self.codec.written, *self._sources), _kept(self.table)))

    @cached_property
    def insert(self) -> CompiledStatement:
        """Write a record of a new key, with its sources.

        Nothing if there is one.
        """
        row = insert(self.table).values(parameters((*self.codec.written, *self._sources)))
        return self._prepare(row.on_conflict_do_nothing(index_elements=list(self.keys)))

    def statement(self, *, is_new: bool, sourced: bool) -> CompiledStatement:
        """The statement that writes a record.

        One that is new always has its sources.
        """
        if is_new:
            return self.insert
        return self.upsert_sourced if sourced else self.upsert

    @cached_property
    def delete(self) -> CompiledStatement:
        return self._prepare(sa.delete(self.table).where(self._this()))

    @cached_property
    def referring(self) -> tuple[CompiledStatement, ...]:
        """One look for each type of record that goes with this one.

        Those of levels are not looked for: they are removed last.
        """
        constraints = (
            key
            for kind in (Membership, Assignment, ThirdPartyGrant, ThirdPartyAssignment)
            for key in _TABLES[kind].foreign_key_constraints
            if key.referred_table is self.table
        )
        return tuple(
            self._prepare(
                sa.select(sa.literal_column("1"))
                .where(*(each.parent == sa.bindparam(each.column.name) for each in key.elements))
                .limit(1)
            )
            for key in constraints
        )

    def decoded(self, row: Sequence[Any]) -> Any:  # noqa: ANN401 - a record of this type
        """The record of a row that may have more columns behind it."""
        return self.codec.decode(row[: len(self.codec.columns)])

    def sources_of(self, row: Sequence[Any]) -> Sources:
        """The sources of a row; unknown for a type that has none."""
        width = len(self.codec.columns)
        found: dict[str, Any] = dict(zip(self._sources, row[width : width + len(self._sources)], strict=True))
        members = found.get("member_sources", _NOBODY)
        if not found.get("source") and members == _NOBODY:
            return UNKNOWN
        return Sources(record=found["source"], members={} if members == _NOBODY else _MEMBERS.decode(members))

    def encoded_sources(self, sources: Sources) -> dict[str, str]:
        """Sources as columns of this table."""
        every = {"source": sources.record, "member_sources": msgspec.json.encode(sources.members).decode()}
        return {name: every[name] for name in self._sources}

    def _records(self) -> sa.Select[Any]:
        return sa.select(*columns(self.table, self.codec))

    def _with_sources(self) -> sa.Select[Any]:
        return self._records().add_columns(*(self.table.c[name] for name in self._sources))

    def _this(self) -> sa.ColumnElement[bool]:
        return sa.and_(*(self.table.c[name] == sa.bindparam(name) for name in self.keys))

    def _page(self) -> sa.Select[Any]:
        keys = [self.table.c[name] for name in self.keys]
        named = (key.label(f"key_{key.name}") for key in keys)
        return self._with_sources().add_columns(*named).order_by(*keys).limit(sa.bindparam("limit", type_=sa.Integer))

    def key(self, record: object) -> dict[str, str]:
        """The key columns of a record and their values."""
        return {name: getattr(record, name) for name in self.keys}


Kinds: TypeAlias = dict[type, RecordType]


def record_types(database: Database, cipher: SecretCipher) -> Kinds:
    """Every kind, prepared for a database. Raises nothing; their codecs raise EncryptionError."""
    secret = encrypted_codec(record_codec(Credentials), cipher, "credentials", "user_id", "totp_secret")
    codecs: dict[type[Any], Codec[Any]] = {**_CODECS, Credentials: secret}
    return {
        record: RecordType(database, table, codecs[record], rank)
        for rank, (record, table) in enumerate(_TABLES.items())
    }


def _kept(table: sa.Table) -> dict[str, Any]:
    """Column values that an upsert must not undo.

    The last accepted TOTP step only rises: writing a person's record never makes a spent code good. An identifier of
    a membership stays, and what was accepted is never an invitation again.
    """
    if table is directory_tables.memberships:
        identifier: sa.ColumnElement[str] = sa.case(
            (table.c.membership_id != "", table.c.membership_id), else_=sa.literal_column("excluded.membership_id")
        )
        return {"membership_id": identifier, "invited": _still(table, "invited")}
    if table is directory_tables.users:
        return {"placeholder": _still(table, "placeholder")}
    if table is not tables.credentials:
        return {}
    stored = table.c.totp_last_step
    new: sa.ColumnElement[int] = sa.literal_column("excluded.totp_last_step")
    return {"totp_last_step": sa.case((stored > new, stored), else_=new)}


def _still(table: sa.Table, flag: str) -> sa.ColumnElement[bool]:
    """A flag that an upsert can only take away."""
    return sa.literal_column(f"{table.name}.{flag} AND excluded.{flag}", sa.Boolean)
