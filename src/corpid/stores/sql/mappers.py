"""Records as rows: table and columns of each type of record."""

from __future__ import annotations

from copy import copy
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec
import sqlalchemy as sa
from msgspec.structs import replace

from corpid.rules.authentication.records import Credentials
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
    NameRefused,
    Operator,
    Service,
    Sources,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
    decode_changes,
    encode_changes,
)
from corpid.rules.directory.sources import UNKNOWN
from corpid.rules.directory.words import words_of
from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.rules.oauth.records import Client
from corpid.stores.sql import tables
from corpid.stores.sql.clients import API_CLIENTS, CLIENTS
from corpid.stores.sql.columns import LIMIT, Codec, encrypted_codec, record_codec, select_columns
from corpid.stores.sql.statements import Statement, insert, parameters, upsert

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from corpid.stores.encryption_at_rest import SecretCipher

R = TypeVar("R", bound=msgspec.Struct)


def fold_user_name(name: str) -> str:
    """The look-up key of a user name.

    Raises NameRefused with the reason in words (D51).
    """
    try:
        return user_name(name)
    except ValueError as error:
        raise NameRefused(f"{name!r}: {error}") from None


def _with_columns(record: type[R], **columns: Callable[[R], str]) -> Codec[R]:
    """The codec of a record with derived columns, and its words."""
    codec = record_codec(record)
    columns["words"] = words_of
    return replace(
        codec,
        written=(*codec.written, *columns),
        encode=lambda each: codec.encode(each) | {name: follow(each) for name, follow in columns.items()},
    )


ENTITIES: Final = _with_columns(Entity, search_text=search_text)
USERS: Final = _with_columns(User, user_name_key=lambda user: fold_user_name(user.user_name))
MEMBERSHIPS: Final = _with_columns(Membership, user_name_key=lambda member: fold_text(member.user_name))
SERVICES: Final = _with_columns(Service)
CREDENTIALS: Final = record_codec(Credentials)
ASSIGNMENTS: Final = record_codec(Assignment)
CHANGE_REQUESTS: Final = record_codec(ChangeRequest, {"changes": (encode_changes, decode_changes)})


PAGE: Final = 500
"""rows that a scan reads at a time"""
_SOURCES: Final = ("source", "member_sources")
"""columns with the source of a record (D65); no request reads them"""
_NOBODY: Final = "{}"
_MEMBERS: Final = msgspec.json.Decoder(dict[str, str])


_TABLES: Final[Mapping[type[Any], sa.Table]] = {
    Client: tables.clients,
    Entity: tables.entities,
    User: tables.users,
    Service: tables.services,
    Credentials: tables.credentials,
    Membership: tables.memberships,
    Administrator: tables.administrators,
    Operator: tables.operators,
    Assignment: tables.assignments,
    ThirdPartyGrant: tables.third_party_grants,
    ThirdPartyAssignment: tables.third_party_assignments,
    RegisteredApiClient: tables.api_clients,
    ChangeRequest: tables.change_requests,
    RegisteredProvisioningToken: tables.provisioning_tokens,
    DeletionRequest: tables.deletion_requests,
}
"""in the order of their references; no file writes the last four, so they keep no sources"""
_CODECS: Final[Mapping[type[Any], Codec[Any]]] = {
    **{record: record_codec(record) for record in _TABLES if record is not ChangeRequest},
    Client: CLIENTS, Entity: ENTITIES, Service: SERVICES, User: USERS, Membership: MEMBERSHIPS, Assignment: ASSIGNMENTS,
    RegisteredApiClient: API_CLIENTS, ChangeRequest: CHANGE_REQUESTS, Credentials: CREDENTIALS,
}  # fmt: skip


class RecordType:
    """A type of record, its table, and its statements.

    `rank`: records refer only to kinds of a lower one.
    """

    def __init__(self, table: sa.Table, codec: Codec[Any], rank: int) -> None:
        self.table: Final = table
        self.codec = codec
        self.rank: Final = rank
        self.keys: Final = tuple(column.name for column in table.primary_key)
        self._sources: Final = tuple(name for name in _SOURCES if name in table.c)
        everything = (*codec.written, *self._sources)
        self.one: Final = self._read(select_one)
        self.sourced: Final = self._read(select_one, self._sources)
        """as `one`, with its sources"""
        self.locked: Final = self._read(_lock_one, self._sources, True)
        """as `sourced`, held until the transaction ends; new rows that refer to it need not wait"""
        self.locked_alone: Final = self._read(_lock_one, self._sources, False)
        """as `locked`, but new rows that refer to it wait"""
        self.first_page: Final = self._read(_select_page, self._sources)
        self.next_page: Final = self._read(_select_next_page, self._sources)
        self.upsert: Final = Statement(partial(_upsert, table, codec.written))
        """the record alone: its sources stay"""
        self.upsert_sourced: Final = Statement(partial(_upsert, table, everything))
        self.insert: Final = Statement(partial(_insert, table, everything))
        """a record of a new key, with its sources; nothing if there is one"""
        self.delete: Final = Statement(partial(_delete, table))

    def statement(self, *, is_new: bool, sourced: bool) -> Statement:
        """The statement that writes a record.

        One that is new always has its sources.
        """
        if is_new:
            return self.insert
        return self.upsert_sourced if sourced else self.upsert

    @cached_property
    def referring(self) -> tuple[Statement, ...]:
        """One look for each type of record that goes with this one.

        Those of levels are not looked for: they are removed last.
        """
        return tuple(
            Statement(partial(_select_referring, constraint))
            for kind in (Membership, Assignment, ThirdPartyGrant, ThirdPartyAssignment)
            for constraint in _TABLES[kind].foreign_key_constraints
            if constraint.referred_table is self.table
        )

    def _read(self, build: Callable[..., sa.Executable], *arguments: object) -> Statement:
        """A statement on the table and the columns of these records."""
        return Statement(partial(build, self.table, self.codec.columns, *arguments))

    def with_codec(self, codec: Codec[Any]) -> RecordType:
        """The same columns and statements, with another codec."""
        other = copy(self)
        other.codec = codec
        return other

    def decode(self, row: Sequence[Any]) -> Any:  # noqa: ANN401 - a record of this type
        """The record of a row that may have more columns behind it."""
        return self.codec.decode(row[: len(self.codec.columns)])

    def decode_sources(self, row: Sequence[Any]) -> Sources:
        """The sources of a row; unknown for a type that has none."""
        width = len(self.codec.columns)
        found: dict[str, Any] = dict(zip(self._sources, row[width : width + len(self._sources)], strict=True))
        members = found.get("member_sources", _NOBODY)
        if not found.get("source") and members == _NOBODY:
            return UNKNOWN
        return Sources(record=found["source"], members={} if members == _NOBODY else _MEMBERS.decode(members))

    def encode_sources(self, sources: Sources) -> dict[str, str]:
        """Sources as columns of this table."""
        every = {"source": sources.record, "member_sources": msgspec.json.encode(sources.members).decode()}
        return {name: every[name] for name in self._sources}

    def key(self, record: object) -> dict[str, str]:
        """The key columns of a record and their values."""
        return {name: getattr(record, name) for name in self.keys}


Kinds: TypeAlias = dict[type, RecordType]


def record_types(cipher: SecretCipher) -> Kinds:
    """Every kind; credentials are encrypted, and their codec raises EncryptionError."""
    known = KINDS[Credentials]
    sealed = encrypted_codec(known.codec, cipher, "credentials", "user_id", "totp_secret")
    return KINDS | {Credentials: known.with_codec(sealed)}


def select_one(table: sa.Table, names: tuple[str, ...], sources: tuple[str, ...] = ()) -> sa.Select[Any]:
    """The key → the record and its sources."""
    return select_columns(table, (*names, *sources)).where(_match_key(table))


def _lock_one(table: sa.Table, names: tuple[str, ...], sources: tuple[str, ...], key_share: bool) -> sa.Select[Any]:
    return select_one(table, names, sources).with_for_update(key_share=key_share)


def _select_page(table: sa.Table, names: tuple[str, ...], sources: tuple[str, ...]) -> sa.Select[Any]:
    keys = list(table.primary_key)
    named = (key.label(f"key_{key.name}") for key in keys)
    found = select_columns(table, (*names, *sources)).add_columns(*named)
    return found.order_by(*keys).limit(LIMIT)


def _select_next_page(table: sa.Table, names: tuple[str, ...], sources: tuple[str, ...]) -> sa.Select[Any]:
    after = sa.tuple_(*(sa.bindparam(key.name) for key in table.primary_key))
    return _select_page(table, names, sources).where(sa.tuple_(*table.primary_key) > after)


def _upsert(table: sa.Table, names: tuple[str, ...]) -> sa.Executable:
    return upsert(table, names, _kept(table))


def _insert(table: sa.Table, names: tuple[str, ...]) -> sa.Executable:
    return insert(table).values(parameters(names)).on_conflict_do_nothing(index_elements=list(table.primary_key))


def _delete(table: sa.Table) -> sa.Executable:
    return sa.delete(table).where(_match_key(table))


def _select_referring(constraint: sa.ForeignKeyConstraint) -> sa.Executable:
    same = (each.parent == sa.bindparam(each.column.name) for each in constraint.elements)
    return sa.select(sa.literal_column("1")).where(*same).limit(1)


def _match_key(table: sa.Table) -> sa.ColumnElement[bool]:
    return sa.and_(*(key == sa.bindparam(key.name) for key in table.primary_key))


def _kept(table: sa.Table) -> dict[str, Any]:
    """Column values that an upsert must not undo.

    The last accepted TOTP step only rises: writing a person's record never makes a spent code good. An identifier of
    a membership stays, and what was accepted is never an invitation again.
    """
    if table is tables.memberships:
        identifier: sa.ColumnElement[str] = sa.case(
            (table.c.membership_id != "", table.c.membership_id), else_=sa.literal_column("excluded.membership_id")
        )
        return {"membership_id": identifier, "invited": _still(table, "invited")}
    if table is tables.users:
        return {"placeholder": _still(table, "placeholder")}
    if table is not tables.credentials:
        return {}
    stored = table.c.totp_last_step
    new: sa.ColumnElement[int] = sa.literal_column("excluded.totp_last_step")
    return {"totp_last_step": sa.case((stored > new, stored), else_=new)}


def _still(table: sa.Table, flag: str) -> sa.ColumnElement[bool]:
    """A flag that an upsert can only take away."""
    return sa.literal_column(f"{table.name}.{flag} AND excluded.{flag}", sa.Boolean)


KINDS: Final[Kinds] = {
    record: RecordType(table, _CODECS[record], rank) for rank, (record, table) in enumerate(_TABLES.items())
}
"""every kind of record; secrets as they are stored"""
