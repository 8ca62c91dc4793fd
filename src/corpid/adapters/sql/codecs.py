"""Records as rows: a record's fields are columns of the same name, its structured fields JSON text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, get_origin

import msgspec

from corpid.directory.choice import search_text
from corpid.directory.names import user_name
from corpid.directory.records import Entity, User
from corpid.ports import NameRefused
from corpid.protocol.records import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corpid.adapters.sealing import Sealer

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec(Generic[T]):
    """How one type of record is written to a row's columns and read back."""

    columns: tuple[str, ...]
    """what `decode` reads, in this order"""
    written: tuple[str, ...]
    """what `encode` gives"""
    encode: Callable[[T], dict[str, Any]]
    decode: Callable[[Sequence[Any]], T]


def record_codec(record: type[T]) -> Codec[T]:
    """The codec of a struct whose fields are text, integers, flags, tuples and dictionaries."""
    fields = msgspec.structs.fields(record)
    names = tuple(field.name for field in fields)
    structured = {field.name for field in fields if get_origin(field.type) in (tuple, dict)}
    readers = [
        (field.name, bool if field.type is bool else msgspec.json.Decoder(field.type).decode)
        for field in fields
        if field.type is bool or field.name in structured
    ]

    def encode(value: T) -> dict[str, Any]:
        row = {name: getattr(value, name) for name in names}
        for name in structured:
            row[name] = msgspec.json.encode(row[name]).decode()
        return row

    def decode(row: Sequence[Any]) -> T:
        values = dict(zip(names, row, strict=True))
        for name, read in readers:
            values[name] = read(values[name])
        return record(**values)

    return Codec(columns=names, written=names, encode=encode, decode=decode)


def sealed_codec(codec: Codec[T], sealer: Sealer, table: str, key: str, column: str) -> Codec[T]:
    """The codec of a record with one secret column, sealed for its table, row and column (D43).

    `decode` raises SealingError.
    """
    key_place, secret_place = codec.columns.index(key), codec.columns.index(column)

    def encode(value: T) -> dict[str, Any]:
        row = codec.encode(value)
        if row[column] is not None:
            row[column] = sealer.seal(table, row[key], column, row[column])
        return row

    def decode(row: Sequence[Any]) -> T:
        values = list(row)
        if values[secret_place] is not None:
            values[secret_place] = sealer.open(table, values[key_place], column, values[secret_place])
        return codec.decode(values)

    return replace(codec, encode=encode, decode=decode)


def user_name_key(name: str) -> str:
    """What a user name is looked up by. Raises NameRefused with the reason in words (D51)."""
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


def _entities() -> Codec[Entity]:
    codec = record_codec(Entity)
    return replace(
        codec,
        written=(*codec.written, "search_text"),
        encode=lambda entity: codec.encode(entity) | {"search_text": search_text(entity)},
    )


class _FormerClient(msgspec.Struct, frozen=True):
    """The member whose name was another one, under which the version before reads and writes it."""

    token_endpoint_audience_until: str | None = None


def _client_text(client: Client) -> str:
    """A client's record; what has a new name stands there under both, for nodes of the version before."""
    former = {"token_endpoint_audience_until": client.endpoint_audience_until}
    return msgspec.json.encode({**msgspec.to_builtins(client), **former}).decode()


def _clients() -> Codec[Client]:
    decoder, former = msgspec.json.Decoder(Client), msgspec.json.Decoder(_FormerClient)

    def decode(row: Sequence[Any]) -> Client:
        client, until = decoder.decode(row[0]), former.decode(row[0]).token_endpoint_audience_until
        return client if until is None else msgspec.structs.replace(client, endpoint_audience_until=until)

    return Codec(
        columns=("record",),
        written=("client_id", "name", "enabled", "record"),
        encode=lambda client: {
            "client_id": client.client_id,
            "name": client.name,
            "enabled": client.enabled,
            "record": _client_text(client),
        },
        decode=decode,
    )


ENTITIES: Final = _entities()
USERS: Final = _users()
CLIENTS: Final = _clients()
