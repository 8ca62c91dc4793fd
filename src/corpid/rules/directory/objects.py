"""The directory's records as objects of the admin API (D59).

Their members are the keys of a directory file, read by the same readers. Which types of JSON a member takes follows
from the record.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, get_args, get_origin

import msgspec

from corpid.rules.directory.document import NOUNS, OWN_FACTORS, SECTIONS, TEST, DirectoryDocument, DocumentEntry, Kind
from corpid.rules.directory.lists import MEMBERS, RECORD_LISTS, RecordList
from corpid.rules.directory.members import mask_text
from corpid.rules.directory.names import is_storable
from corpid.rules.directory.nodes import SHOWN, DirectoryError, Json, JsonDocument, nodes, pointer
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Entity,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.rules.directory.values import ALL, Parameter, ParameterDefinition, ParameterKind, RoleDescription
from corpid.rules.fields import Field, KeyedRecord, documented_fields, fields_of
from corpid.rules.oauth.records import Client
from corpid.rules.readers import InvalidValue, Pairs, unknown_field

Schema: TypeAlias = dict[str, Any]
"""a JSON Schema"""

READ_ONLY: Final = ("id", "user_id", "identity", "etag")
"""members that are shown and never written; a change may repeat them as they are"""
_TEXT: Final[Schema] = {"type": "string"}
_FLAG: Final[Schema] = {"type": "boolean"}


class MemberFault(msgspec.Struct, frozen=True, order=True):
    """A fault of an object, by the JSON pointer of its member."""

    pointer: str
    detail: str


class InvalidObject(Exception):
    """An object is not as it has to be: every fault found.

    Nothing was changed.
    """

    def __init__(self, faults: list[MemberFault]) -> None:
        self.faults = tuple(sorted(set(faults)))
        super().__init__("; ".join(fault.detail for fault in self.faults))

    @classmethod
    def from_directory_error(cls, error: DirectoryError, document: JsonDocument) -> InvalidObject:
        """The faults of a directory's document, by pointer.

        Of the first problems only: no more are reported, and a pointer can be as long as the body.
        """
        return cls([MemberFault(document.pointer(problem.line), problem.reason) for problem in error.problems[:SHOWN]])


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of record as the API shows it."""

    kind: Kind
    path: str
    """its list, below /api/v1"""
    title: str
    """of its schema, in capitalised words"""
    record: type[KeyedRecord]
    keys: dict[str, Field]
    """name of a member → how it is read"""
    renamable: bool = False
    """whether the member that names it may change"""
    completed_by_store: bool = False
    """whether the store gives a new one an identifier"""
    bound_defaults: Mapping[str, Json] = {}
    """members of a new one by a client that is bound to an entity, unless it says otherwise"""

    @property
    def noun(self) -> str:
        """Its name for people, with an article."""
        return NOUNS[self.kind]

    @property
    def lists(self) -> tuple[RecordList, ...]:
        """Its lists, with those of one entity. Source: D83"""
        own = RECORD_LISTS[self.record]
        return (own, MEMBERS) if self.record in {Membership, User} else (own,)

    @property
    def filter_columns(self) -> dict[str, str]:
        """The columns that the filters of its lists narrow, by filter."""
        return {name: column for each in self.lists for name, column in each.filters.items()}

    @property
    def filters(self) -> tuple[str, ...]:
        """The filters of its lists, of which one may be searched alone."""
        return tuple(dict.fromkeys(name for each in self.lists for name in each.queries))

    @property
    def sides(self) -> tuple[str, ...]:
        """The filters that name an entity.

        Of what concerns two, the one that a bound client has by default first.
        """
        return tuple(
            name for name, column in self.filter_columns.items() if column in {"entity_id", "client_entity_id"}
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its list as CSV."""
        return tuple(dict.fromkeys(("id", *(("user", "user_id", "identity") if self.names_user else ()), *self.keys)))

    def row(self, members: Mapping[str, Json]) -> list[str]:
        """The cells of an object in these columns, texts or JSON."""
        cells = (members.get(name, "") for name in self.columns)
        return [each if isinstance(each, str) else msgspec.json.encode(each).decode() for each in cells]

    @property
    def identity(self) -> tuple[str, ...]:
        """The members that name an object and never change.

        None of a person, whose user name can.
        """
        return () if self.renamable else tuple(name for name, key in self.keys.items() if key.identifies)

    @property
    def width(self) -> int:
        """The number of parts of its key."""
        return len(self.identity) or 1

    @property
    def singular(self) -> str:
        """Its name in those of operations."""
        return re.sub("(?<=[a-z])(?=[A-Z])", "_", self.title).lower()

    @property
    def properties(self) -> dict[str, Schema]:
        """The JSON Schema of each member that can be written."""
        return {name: _schema(key) for name, key in self.keys.items()}

    @property
    def required(self) -> list[str]:
        """The members that a new object has to have."""
        return [name for name, key in self.keys.items() if key.needed]

    @property
    def names_user(self) -> bool:
        """True if the key begins with a person."""
        return "user" in self.keys

    @property
    def names_member(self) -> bool:
        """True if that person is a member of the entity."""
        return self.names_user and not self.keys["user"].refers


def _keyed(section: str, *, left_out: frozenset[str] = frozenset()) -> dict[str, Field]:
    """The keys of a section whose entries have one outside, with that."""
    found = SECTIONS[section]
    [outside] = found.identity
    first = Field(key=outside, name=outside, type=str, read=found.identifier, needed=True, identifies=True)
    return {outside: first, **{key: value for key, value in found.keys.items() if key not in left_out}}


CLIENT: Final = Resource(
    kind="client", path="clients", title="Client", record=Client,
    keys=_keyed("clients"),
)  # fmt: skip
ENTITY: Final = Resource(
    kind="entity", path="entities", title="Entity", record=Entity,
    keys=_keyed("entities"),
)  # fmt: skip
MEMBERSHIP: Final = Resource(
    kind="membership", path="memberships", title="Membership", record=Membership,
    keys=documented_fields(Membership), completed_by_store=True,
)  # fmt: skip
RESOURCES: Final = (
    ENTITY,
    Resource(
        kind="user", path="users", title="User", record=User, renamable=True,
        keys=_keyed("users", left_out=frozenset({"id", "memberships", TEST, *OWN_FACTORS})),
    ),
    MEMBERSHIP,
    Resource(kind="service", path="services", title="Service", record=Service, keys=_keyed("services")),
    Resource(
        kind="assignment", path="assignments", title="Assignment", record=Assignment,
        keys=documented_fields(Assignment),
    ),
    Resource(
        kind="grant", path="third-party-grants", title="ThirdPartyGrant",
        record=ThirdPartyGrant, keys=documented_fields(ThirdPartyGrant), bound_defaults={"state": "offered"},
    ),
    Resource(
        kind="third-party row", path="third-party-assignments", title="ThirdPartyAssignment",
        record=ThirdPartyAssignment, keys=documented_fields(ThirdPartyAssignment),
    ),
    Resource(
        kind="administrator", path="administrators", title="Administrator",
        record=Administrator, keys=documented_fields(Administrator),
    ),
    CLIENT,
)  # fmt: skip


def object_id(key: tuple[str, ...]) -> str:
    """The identifier of an object.

    Its key, or an opaque text if that has several parts. Source: D59
    """
    if len(key) == 1:
        return key[0]
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).rstrip(b"=").decode("ascii")


def key_of(text: str, width: int) -> tuple[str, ...] | None:
    """The key of an object with this identifier.

    None for a text that is the identifier of nothing. `width` is the number of parts. Source: D59
    """
    if width == 1:
        return (text,) if is_storable(text) else None
    try:
        octets = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        parts = msgspec.json.decode(octets, type=tuple[str, ...])
    except (ValueError, binascii.Error, RecursionError):
        return None
    return parts if len(parts) == width and object_id(parts) == text and is_storable("".join(parts)) else None


def to_json_object(
    resource: Resource,
    record: KeyedRecord,
    names: Mapping[str, str],
    identities: Mapping[str, str],
    *,
    whole: bool,
) -> dict[str, Json]:
    """A record as its JSON object.

    `names` and `identities` are by user identifier: user names, and what identifies people. `whole`: with identity
    numbers, which are masked otherwise. Source: D59, D61, D68
    """
    found: dict[str, Json] = {"id": object_id(record.key)}
    for name, rule in resource.keys.items():
        value = getattr(record, rule.name)
        if rule.name == "user_id":
            found |= {"user": names.get(value, ""), "user_id": value, "identity": identities.get(value, "")}
        elif value is not None and not (rule.moot and rule.moot(record)):
            found[name] = msgspec.json.decode(value) if rule.form == "key set" else rule.written(value)
    if "identity_number" in found and not whole:
        found["identity_number"] = mask_text(str(found["identity_number"]))
    return found


class ParsedObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object that was read: a directory's document with this one entry."""

    entry: DocumentEntry
    document: DirectoryDocument
    json: JsonDocument

    def unfit(self, error: DirectoryError) -> InvalidObject:
        """The faults that a plan has found."""
        return InvalidObject.from_directory_error(error, self.json)


def parse_object(resource: Resource, value: Json, existing: KeyedRecord | None = None) -> ParsedObject:
    """A new object, or an existing one after a change.

    A member that the latter lacks has its default again. Raises InvalidObject with every fault. Source: D59, RFC
    7396, docs/directory.md
    """
    if not isinstance(value, dict):
        raise InvalidObject([MemberFault("", f"a JSON object is expected here: {resource.noun}")])
    document = nodes(value)
    assert isinstance(document.root, Pairs)  # noqa: S101 - of a JSON object
    faults: list[MemberFault] = []
    fields: dict[str, object] = {}
    lines: dict[str, int] = {}
    for key, node in document.root.entries:
        if len(faults) >= SHOWN:  # no more are reported, and a suggestion for each costs seconds
            raise InvalidObject(faults)
        rule = resource.keys.get(key.text)
        if rule is None:
            faults.append(MemberFault(pointer(key.text), _unknown(resource, key.text)))
            continue
        found = _misfits(_schema(rule), value[key.text], pointer(key.text))
        misfits = list(islice(found, SHOWN))
        faults += misfits
        if misfits:
            continue
        lines[rule.name] = node.line
        try:
            fields[rule.name] = rule.value(node)
        except InvalidValue as error:
            faults.append(MemberFault(document.pointer(error.line), error.reason))
    named = {fault.pointer for fault in faults}
    faults += [
        MemberFault(pointer(name), f"{name} is required in {resource.noun}")
        for name in resource.required
        if resource.keys[name].name not in fields and pointer(name) not in named
    ]
    if resource.kind == "client" and fields.get("jwks") is not None and fields.get("jwks_uri") is not None:
        faults.append(MemberFault("/jwks_uri", "write either jwks or jwks_uri, not both"))
    if faults:
        raise InvalidObject(faults)
    if existing is not None:
        fields = _with_defaults(resource, fields)
    entry = _entry(resource, fields, lines, existing)
    entries = {resource.kind: {entry.key: entry}}
    return ParsedObject(
        entry=entry,
        document=DirectoryDocument(file="", entries=entries, complete=frozenset(), listed_members=frozenset()),
        json=document,
    )


def _unknown(resource: Resource, name: str) -> str:
    if name in READ_ONLY:
        return f"{name} is read-only: omit it"
    return unknown_field(name, resource.keys, resource.noun)


def _with_defaults(resource: Resource, fields: dict[str, object]) -> dict[str, object]:
    """The fields with the record's default for each that is not there."""
    defaults = {field.name: field.default for field in fields_of(resource.record).values()}
    missing = {rule.name: defaults.get(rule.name, msgspec.NODEFAULT) for rule in resource.keys.values()}
    whole = {**{name: value for name, value in missing.items() if value is not msgspec.NODEFAULT}, **fields}
    if resource.kind == "entity" and "registration_number" not in whole:
        if whole["type"] != "UEN":
            raise InvalidObject(
                [MemberFault("/registration_number", "registration_number is required, because the type is not UEN")]
            )
        whole["registration_number"] = whole["entity_id"]
    return whole


def _entry(
    resource: Resource,
    fields: dict[str, object],
    lines: dict[str, int],
    existing: Any,  # noqa: ANN401 - of its kind
) -> DocumentEntry:
    if resource.renamable and existing is not None:
        fields["user_id"] = existing.key[0]
    names = resource.identity or ("user_name",)
    members = [resource.keys[name].name for name in names]
    key = tuple(str(fields.pop(member, "")) for member in members)
    return DocumentEntry(kind=resource.kind, key=key, line=lines.get(members[0], 0), fields=fields, lines=lines)


def _schema(key: Field) -> Schema:
    schema = _TEXT if key.name == "user_id" else _schema_of(key.type)
    if key.form == "key set":
        schema = {"type": "object"}
    elif key.words and schema == _TEXT and not key.clearable:
        schema = {**_TEXT, "enum": list(key.words)}
    described = key.doc or key.help
    return {**schema, "description": described} if described else schema


def _schema_of(annotated: Any) -> Schema:  # noqa: ANN401 - any annotation of a record
    origin, arguments = get_origin(annotated), get_args(annotated)
    if origin is Annotated:
        return _schema_of(arguments[0])
    if origin in {Union, UnionType}:
        alternatives = [each for each in arguments if each is not NoneType]
        return _schema_of(alternatives[0]) if len(alternatives) == 1 else {"anyOf": list(map(_schema_of, alternatives))}
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin is tuple:
        return _LISTS.get(arguments[0]) or {"type": "array", "items": _schema_of(arguments[0])}
    return {bool: _FLAG, int: {"type": "integer"}}.get(annotated, _TEXT)


_LISTS: Final[Mapping[type, Schema]] = {
    Parameter: {
        "type": "object",
        "additionalProperties": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]},
    },
    ParameterDefinition: {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "properties": {"kind": {"type": "string", "enum": list(get_args(ParameterKind))}, "mandatory": _FLAG},
            "additionalProperties": False,
        },
    },
    RoleDescription: {"type": "object", "additionalProperties": _TEXT},
}
"""type of a list's values → the schema of the mapping that is written for it"""
_TYPES: Final[Mapping[str, tuple[type, str]]] = {
    "string": (str, "a text"),
    "boolean": (bool, "true or false"),
    "integer": (int, "a whole number"),
    "array": (list, "a list"),
    "object": (dict, "an object"),
}


def _misfits(schema: Schema, value: Json, at: str) -> Iterator[MemberFault]:
    """The values whose type is another one.

    Which values a type may have is left to the readers.
    """
    if "anyOf" in schema:
        if all(next(_misfits(each, value, at), None) is not None for each in schema["anyOf"]):
            yield MemberFault(at, f"{' or '.join(_expected(each) for each in schema['anyOf'])} is expected here")
        return
    kind, _ = _TYPES[schema["type"]]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        yield MemberFault(at, f"{_expected(schema)} is expected here")
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _misfits(schema["items"], item, at + pointer(place))
    elif isinstance(value, dict):
        known = schema.get("properties", {})
        other = schema.get("additionalProperties")
        for name, item in value.items():
            if name in known or isinstance(other, dict):
                yield from _misfits(known.get(name, other), item, at + pointer(name))


def _expected(schema: Schema) -> str:
    if schema.get("enum") == [ALL]:
        return f"the word {ALL}"
    return _TYPES[schema["type"]][1]
