"""Mappings between one type of record and a row's columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Union, get_origin

import msgspec
from msgspec.structs import fields, replace

if TYPE_CHECKING:
    import sqlalchemy as sa

    from corpid.stores.encryption_at_rest import SecretCipher

T = TypeVar("T", bound=msgspec.Struct)


class Codec(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A mapping between one type of record and a row's columns."""

    columns: tuple[str, ...]
    """what `decode` reads, in this order"""
    written: tuple[str, ...]
    """what `encode` gives"""
    encode: Callable[[T], dict[str, Any]]
    decode: Callable[[Sequence[Any]], T]


def record_codec(record: type[T]) -> Codec[T]:
    """The codec of a struct of texts, integers, flags, tuples and dictionaries."""
    declared = fields(record)
    names = tuple(field.name for field in declared)
    structured = {field.name for field in declared if get_origin(field.type) in (tuple, dict, Union)}
    readers = [
        (field.name, bool if field.type is bool else msgspec.json.Decoder(field.type).decode)
        for field in declared
        if field.type is bool or field.name in structured
    ]

    def encode(value: T) -> dict[str, Any]:
        row = msgspec.structs.asdict(value)
        for name in structured:
            row[name] = msgspec.json.encode(row[name]).decode()
        return row

    def decode(row: Sequence[Any]) -> T:
        values = dict(zip(names, row, strict=True))
        for name, read in readers:
            values[name] = read(values[name])
        return record(**values)

    return Codec(columns=names, written=names, encode=encode, decode=decode)


def encrypted_codec(codec: Codec[T], cipher: SecretCipher, table: str, key: str, column: str) -> Codec[T]:
    """The codec of a record with one encrypted column (D43).

    `decode` raises EncryptionError.
    """
    key_place, secret_place = codec.columns.index(key), codec.columns.index(column)

    def encode(value: T) -> dict[str, Any]:
        row = codec.encode(value)
        if row[column] is not None:
            row[column] = cipher.seal(table, row[key], column, row[column])
        return row

    def decode(row: Sequence[Any]) -> T:
        values = list(row)
        if values[secret_place] is not None:
            values[secret_place] = cipher.open(table, values[key_place], column, values[secret_place])
        return codec.decode(values)

    return replace(codec, encode=encode, decode=decode)


def columns(table: sa.FromClause, codec: Codec[Any]) -> list[sa.ColumnElement[Any]]:
    """The columns that a codec decodes, in its order."""
    return [table.c[name] for name in codec.columns]
