"""Columns: their kinds in tables, and records as values of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeAlias, TypeVar, Union, get_args, get_origin

import msgspec
import sqlalchemy as sa
from msgspec.structs import replace

from corpid.rules.fields import Field, fields_of
from corpid.stores import milliseconds
from corpid.stores.sql.statements import NOW, IsAmong, Part, Query, by_shape, insert, parameters, upsert

if TYPE_CHECKING:
    from sqlalchemy.dialects.sqlite import Insert
    from sqlalchemy.sql.schema import SchemaItem

    from corpid.stores.encryption_at_rest import SecretCipher

T = TypeVar("T", bound=msgspec.Struct)
Write: TypeAlias = Callable[[Any], bytes]
Read: TypeAlias = Callable[[str], Any]
METADATA: Final = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
INDEXES: Final[list[sa.Index]] = []
"""every index, as declared: of two that serve a statement alike an engine takes the one that was made later"""
TEXT: Final = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
"""compared and sorted byte by byte, whatever the order that a database was made with"""
LIMIT: Final = sa.bindparam("limit", type_=sa.Integer)
_SWEPT: Final = 500
"""expired rows that a sweep removes in one go"""
_SECONDS: Final = NOW // sa.literal_column("1000", sa.BigInteger)
_KINDS: Final[Mapping[Any, sa.types.TypeEngine[Any]]] = {
    bool: sa.Boolean(), int: sa.BigInteger(), float: sa.Double(),
}  # fmt: skip
"""of columns, by the type of the field; others are text"""


@sa.event.listens_for(sa.Index, "after_parent_attach")
def _list_index(index: sa.Index, of: sa.Table) -> None:
    if of.metadata is METADATA:
        INDEXES.append(index)


def table(name: str, *items: SchemaItem) -> sa.Table:
    """A table whose rows are stored in the primary key's tree.

    The look-ups of a request are one descent.
    """
    return sa.Table(name, METADATA, *items, sqlite_with_rowid=False)


def text(name: str) -> sa.Column[str]:
    return sa.Column(name, TEXT, nullable=False)


def key(name: str, *references: SchemaItem) -> sa.Column[str]:
    """A text of the primary key."""
    return sa.Column(name, TEXT, *references, primary_key=True, nullable=False)


def integer(name: str, *, index: bool = False) -> sa.Column[int]:
    """A whole number of 64 bits."""
    return sa.Column(name, sa.BigInteger, nullable=False, index=index)


def flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False)


def later(name: str, default: str) -> sa.Column[str]:
    """A column that the previous version does not know or write."""
    return sa.Column(name, TEXT, nullable=False, server_default=default)


def source() -> sa.Column[str]:
    """The actor that wrote a record; of a user, that made it (D65)."""
    return later("source", "")


def foreign_key(target: str) -> sa.ForeignKey:
    """A reference; the row ends with what it refers to."""
    return sa.ForeignKey(target, ondelete="CASCADE")


def membership() -> sa.ForeignKeyConstraint:
    """Roles end with the membership they belong to."""
    return sa.ForeignKeyConstraint(
        ["user_id", "entity_id"], ["memberships.user_id", "memberships.entity_id"], ondelete="CASCADE"
    )


def partial(name: str, *columns: str, rows: str, unique: bool = False) -> sa.Index:
    """An index of some rows.

    Declared for SQLite only: PostgreSQL's declaration would load its dialect. `schema` adds it.
    """
    return sa.Index(name, *columns, unique=unique, sqlite_where=sa.text(rows))


def record_columns(record: type[msgspec.Struct]) -> list[SchemaItem]:
    """The columns of a record's fields, its key first."""
    declared = sorted(fields_of(record).values(), key=lambda each: not each.identifies)
    return [_record_column(each) for each in declared]


def _record_column(field: Field) -> sa.Column[Any]:
    references = [foreign_key(field.refers)] if field.refers else []
    null = NoneType in get_args(field.type)
    kind = _KINDS.get(get_args(field.type)[0] if null else field.type, TEXT)
    if field.identifies:
        return sa.Column(field.name, kind, *references, primary_key=True, nullable=False, autoincrement=False)
    if not field.added:
        return sa.Column(field.name, kind, *references, nullable=null)
    return sa.Column(field.name, kind, nullable=False, server_default=_column_default(field))


def _column_default(field: Field) -> str | sa.ColumnElement[bool]:
    match field.default:
        case False:
            return sa.false()
        case str(text):
            return text
        case (0 | tuple()) as value:
            return msgspec.json.encode(value).decode()
    raise TypeError(f"{field.name}: no column that was added later has the default {field.default!r}")


class Codec(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A mapping between one type of record and a row's columns."""

    columns: tuple[str, ...]
    """what `decode` reads, in this order"""
    written: tuple[str, ...]
    """what `encode` gives"""
    encode: Callable[[T], dict[str, Any]]
    decode: Callable[[Sequence[Any]], T]


def record_codec(record: type[T], forms: Mapping[str, tuple[Write, Read]] = MappingProxyType({})) -> Codec[T]:
    """The codec of a struct of texts, integers, flags, tuples and dictionaries.

    `forms` are members whose text is not the JSON of their type: how each is written and read.
    """
    declared = fields_of(record).values()
    names = tuple(field.name for field in declared)
    structured = {field.name for field in declared if get_origin(field.type) in (tuple, dict, Union)}
    readers = [
        (field.name, bool if field.type is bool else msgspec.json.Decoder(field.type).decode)
        for field in declared
        if (field.type is bool or field.name in structured) and field.name not in forms
    ] + [(name, read) for name, (_, read) in forms.items()]
    writers = dict.fromkeys(structured, msgspec.json.encode) | {name: write for name, (write, _) in forms.items()}

    def encode(value: T) -> dict[str, Any]:
        row = msgspec.structs.asdict(value)
        for name, write in writers.items():
            row[name] = write(row[name]).decode()
        return row

    def decode(row: Sequence[Any]) -> T:
        values = dict(zip(names, row, strict=True))
        for name, read in readers:
            values[name] = read(values[name])
        return record(**values)

    return Codec(columns=names, written=names, encode=encode, decode=decode)


def is_live(table: sa.Table) -> sa.ColumnElement[bool]:
    """The condition that a row has not ended.

    Live while now < expires_at, in epoch seconds, by the engine's clock if any (D49).
    """
    return table.c.expires_at > _SECONDS


@by_shape
def _sweep(table: sa.Table) -> sa.Executable:
    # PostgreSQL asks the clock once, not for every row, and so can use the index
    once = sa.select(_SECONDS).scalar_subquery()
    expired = sa.select(table).where(table.c.expires_at <= once).limit(_SWEPT).with_for_update(skip_locked=True)
    return sa.delete(table).where(IsAmong(table, expired))


class ExpiringRows(Part):
    """Rows that end at a moment, and are swept later."""

    table: ClassVar[sa.Table]

    async def sweep(self, *, now: float) -> int:
        """Remove some expired ones.

        The number removed. Calling it until that is 0 removes them all. Those that another process removes are left to
        it.
        """
        return await self._database.write(_sweep(self.table), {"now": milliseconds(now)})


class RecordTable(Codec[T], frozen=True, kw_only=True):
    """A table whose rows are records of one type."""

    table: sa.Table

    def query(self, build: Callable[[sa.Select[Any]], sa.Select[Any]]) -> Query[T]:
        """A query; `build` narrows and sorts the selection of all records."""
        return Query(lambda: build(select_columns(self.table, self.columns)), self.decode)

    def insert(self) -> Insert:
        """An insertion, with a parameter for every column."""
        return insert(self.table).values(parameters(self.written))

    def upsert(self) -> sa.Executable:
        """An insertion, or an update of the row with the same key."""
        return upsert(self.table, self.written)


def select_columns(table: sa.Table, names: Sequence[str]) -> sa.Select[Any]:
    """Every record of a table."""
    return sa.select(*(table.c[name] for name in names))


def record_table(table: sa.Table, record: type[T]) -> RecordTable[T]:
    """A table whose columns are the fields of a record."""
    codec = record_codec(record)
    return RecordTable(
        columns=codec.columns, written=codec.written, encode=codec.encode, decode=codec.decode, table=table
    )


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


def text_parameter(name: str) -> sa.BindParameter[str]:
    return sa.bindparam(name, type_=sa.Text)


def text_parameters(name: str, count: int) -> list[sa.BindParameter[str]]:
    """Numbered parameters, whose values `number_texts` gives."""
    return [text_parameter(f"{name}_{number}") for number in range(count)]


def number_texts(name: str, texts: Sequence[str]) -> dict[str, str]:
    """The values of numbered parameters."""
    return {f"{name}_{number}": text for number, text in enumerate(texts)}


def repeat_texts(name: str, texts: Sequence[str], count: int) -> dict[str, str]:
    """The values of so many numbered parameters, of which there are fewer.

    Always the same statement: what is repeated is found once.
    """
    return number_texts(name, [*texts, *[*texts[:1]] * (count - len(texts))])


def integer_parameter(name: str) -> sa.BindParameter[int]:
    return sa.bindparam(name, type_=sa.BigInteger)


def columns(table: sa.FromClause, codec: Codec[Any]) -> list[sa.ColumnElement[Any]]:
    """The columns that a codec decodes, in its order."""
    return [table.c[name] for name in codec.columns]


def decode_joined(row: Sequence[Any], *codecs: Codec[Any]) -> list[Any]:
    """The records of a row that has the columns of several codecs.

    None for one of an outer join that is not there. More columns may follow.
    """
    found, start = [], 0
    for codec in codecs:
        end = start + len(codec.columns)
        found.append(None if row[start] is None else codec.decode(row[start:end]))
        start = end
    return found


def belongs_to_person(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """The condition that a row has the `user_id` of a statement."""
    return table.c.user_id == sa.bindparam("user_id")
