"""Declaration of a record's fields: each stands once, in the record's class.

From it follow the column, the keys of a directory file, the members of the admin API, columns of tables (CSV), the
attribute of SCIM, options of commands, labels on pages and in the history, and what plan, audit and exports may show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args, get_origin

import msgspec

from corpid.rules.readers import URI, ListReader, Node, Reader, day, key_set, whole_number, yes_or_no
from corpid.texts import Phrase

NOTHING: Final = "none"
"""the word in a document that takes a value away"""


class Disclosure(Enum):
    """The form in which plan and audit show a field (D57)."""

    SECRET = auto()
    """only whether it is set, and that it changed: hashes, secrets, key material"""
    BOOKKEEPING = auto()
    """nothing: it serves the record alone, and follows from others"""
    PERSONAL = auto()
    """the value, and in the audit only in the details, which can be erased"""
    MASKED = auto()
    """as PERSONAL, and only its last characters"""
    MARK = auto()
    """the value, of a record that is added or removed only if it is true"""


ValueForm: TypeAlias = Literal["text", "url", "day", "key set", "word", "flag", "number"]
"""how a value is written; `word` is one of a closed list"""
_FORMS: Final[Mapping[Reader | None, ValueForm]] = {
    URI: "url", day: "day", key_set: "key set", yes_or_no: "flag", whole_number: "number"
}  # fmt: skip


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """The declaration of a field, beside its type and default."""

    key: str = ""
    """its name in documents, tables and JSON; the field's own if it is empty"""
    read: Reader | None = None
    """the reader of a document's node, which raises InvalidValue; None: no door writes the field"""
    write: Callable[[Any], object] | None = None
    """writes the value as documents have it; None: a text, flag or number, or a list of them"""
    moot: Callable[[Any], bool] | None = None
    """whether it means nothing in a record, so that no document shows it"""
    in_documents: bool = True
    """whether directory files and the admin API write it; else only doors of its record do"""
    needed: bool = False
    """whether a new record has to name it"""
    clearable: bool = False
    """whether `none` takes the value away, which leaving the key out does not"""
    label: Phrase | None = None
    """its name on pages and in the history, in the order of the record; None: they do not show it"""
    choices: Mapping[str, Phrase] = MappingProxyType({})
    """its values, if they are a closed list, each with its name on pages"""
    form_label: Phrase | None = None
    """its label in a form, if it is another than `label`"""
    hint: Phrase | None = None
    """what a form says about it"""
    remedy: Phrase | None = None
    """what a person should do who has typed a value that cannot be stored"""
    help: str = ""
    """a sentence for options of commands, the admin API and documents"""
    default_help: str = ""
    """a further sentence for the option of a new record, on omitting it"""
    doc: str = ""
    """the value, for docs/directory.md and the admin API, if it is more than `help`"""
    default_doc: str = ""
    """the meaning of omitting it, for docs/directory.md; empty: the default of the record"""
    concerns: str = ""
    """the field of the generations that have what it is about; empty: it concerns all of them"""
    former: str = ""
    """a former name, which files and commands still take"""
    example: object = None
    """a value for tests, if one differs from the default; all examples of a record are valid together"""
    disclosure: Disclosure | None = None
    """None: plan and audit show the value"""
    scim: str = ""
    """attribute of SCIM's core User, or of an extension: `urn:…:department`"""
    refers: str = ""
    """the column that it refers to, such as entities.entity_id; the record ends with the other one"""
    identifies: bool = False
    """part of the record's key"""
    searched: bool = False
    """whether records are found by its words (`rules.directory.words`)"""
    added: bool = False
    """whether the column came after the table, so that servers of the previous version do not write it"""
    name: str = ""
    """in the class; given by `fields_of`"""
    type: Any = None
    """of the class's annotation; given by `fields_of`"""
    default: Any = None
    """`msgspec.NODEFAULT` if there is none; given by `fields_of`"""

    @property
    def most(self) -> int:
        """The most characters of a text; 0: no limit of its own."""
        return getattr(self.read, "most", 0)

    @property
    def listed(self) -> bool:
        """True for a list of such values."""
        return isinstance(self.read, ListReader)

    @property
    def words(self) -> tuple[str, ...]:
        """The closed list of values, of a list of each value."""
        return getattr(self._item, "words", ())

    @property
    def form(self) -> ValueForm:
        """The form of a value, of a list of each value."""
        return "word" if self.words else _FORMS.get(self._item, "text")

    @property
    def is_flag_or_none(self) -> bool:
        """True for a flag that may have no value."""
        return self.form == "flag" and self.clearable

    @property
    def empties(self) -> bool:
        """True if `none` empties it: no value, or an empty list."""
        return self.clearable or (isinstance(self.read, ListReader) and self.read.least == 0)

    @property
    def option(self) -> str:
        """The name of its option, with underscores.

        An option of a list names one value of it.
        """
        return self.name.removesuffix("s") if self.listed else self.name

    @property
    def _item(self) -> Reader | None:
        return self.read.item if isinstance(self.read, ListReader) else self.read

    def written(self, value: Any) -> Any:  # noqa: ANN401 - of the field's type
        """The value of a record as documents have it."""
        if self.write is not None:
            return self.write(value)
        return list(value) if isinstance(value, tuple) else value

    def value(self, node: Node) -> object:
        """The value for the record, None to remove it.

        Raises InvalidValue. Source: docs/directory.md
        """
        assert self.read is not None  # noqa: S101 - of those that documents name
        return None if self.clearable and getattr(node, "text", None) == NOTHING else self.read(node)


SECRET: Final = Field(disclosure=Disclosure.SECRET)
BOOKKEEPING: Final = Field(disclosure=Disclosure.BOOKKEEPING)
PERSONAL: Final = Field(disclosure=Disclosure.PERSONAL)
KEY: Final = Field(identifies=True)
OF_PERSON: Final = Field(refers="users.user_id")
PERSON: Final = Field(refers="users.user_id", identifies=True)
OF_ENTITY: Final = Field(refers="entities.entity_id", identifies=True)
CLIENT: Final = Field(refers="clients.client_id", identifies=True)
"""the one that a record is of, whose identifier is its key or begins it"""
LATER: Final = Field(added=True)


@cache
def fields_of(record: type[msgspec.Struct]) -> Mapping[str, Field]:
    """The fields of a record, by name and in its order.

    One that declares nothing is a plain column. Source: docs/architecture.md, "One declaration"
    """
    found = {}
    for each in msgspec.structs.fields(record):
        annotated, declared = each.type, Field()
        if get_origin(annotated) is Annotated:
            annotated, *marks = get_args(annotated)
            declared = next((mark for mark in marks if isinstance(mark, Field)), declared)
        default = each.default
        if each.default_factory is not msgspec.NODEFAULT:
            default = each.default_factory()
        found[each.name] = msgspec.structs.replace(
            declared, key=declared.key or each.name, name=each.name, type=annotated, default=default
        )
    return MappingProxyType(found)


class KeyedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record that is stored and found by its key."""

    @property
    def key(self) -> tuple[str, ...]:
        """The values of the fields that identify it, in its order."""
        return _key_getter(type(self))(self)


def key_fields(record: type[msgspec.Struct]) -> tuple[str, ...]:
    """The names of the fields that identify a record."""
    return tuple(each.name for each in fields_of(record).values() if each.identifies)


@cache
def _key_getter(record: type[msgspec.Struct]) -> Callable[[object], tuple[str, ...]]:
    names = key_fields(record)
    if len(names) > 1:
        return attrgetter(*names)
    get_only = attrgetter(names[0])
    return lambda record: (get_only(record),)


def documented_fields(record: type[msgspec.Struct]) -> dict[str, Field]:
    """Fields that directory files and the admin API write, by key.

    Those that identify the record come first. Source: docs/directory.md
    """
    found = [each for each in fields_of(record).values() if each.read is not None and each.in_documents]
    return {each.key: each for each in sorted(found, key=lambda each: not each.identifies)}
