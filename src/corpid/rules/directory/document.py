"""A directory file: its sections, parsed into entries with lines, and written.

The sections are data; the same table for people is in docs/directory.md. Members of an API client are read by the same
keys. Nothing is decided here about what exists already; `plan` compares a document with the directory. What is written
holds no secrets; applying it to the same directory changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from textwrap import indent
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from corpid.rules.directory import values
from corpid.rules.directory.names import without_marks
from corpid.rules.directory.nodes import DirectoryError, FileProblem
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Entity,
    Membership,
    Operator,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.rules.fields import NOTHING, Field, KeyedRecord, documented_fields, fields_of, key_fields
from corpid.rules.oauth.api_client import API_CLIENT_MEMBERS
from corpid.rules.oauth.records import Client
from corpid.rules.readers import (
    CLIENT_ID,
    InvalidValue,
    Items,
    Node,
    Pairs,
    Reader,
    Scalar,
    quote_value,
    suggestion,
    unknown_field,
    yes_or_no,
)

Kind: TypeAlias = Literal[
    "service", "entity", "user", "credentials", "membership", "administrator", "operator",
    "assignment", "grant", "third-party row", "client",
]  # fmt: skip

NOUNS: Final[Mapping[Kind, str]] = {
    "service": "a service", "entity": "an entity", "user": "a person", "credentials": "a person's factors",
    "membership": "a membership", "administrator": "an administrator", "operator": "an operator",
    "assignment": "a role", "grant": "a third-party grant", "third-party row": "a third-party assignment",
    "client": "a client",
}  # fmt: skip
"""kind → its name for people, with an article"""
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""every kind of record, in the order of writing: referenced records come first"""
LEVELS: Final[frozenset[Kind]] = frozenset({"administrator", "operator"})
"""kinds that are pruned only if that is asked for on its own (D65)"""

OWN_FACTORS: Final = frozenset({"password", "password_hash", "totp_secret"})
TEST: Final = "test"
"""marks a person of the demo's file whom the demo signs in without their factors; it is stored nowhere (D66)"""


def memberships(node: Node) -> dict[str, tuple[int, dict[str, object]]]:
    """Entity identifier → line and content of the membership.

    Raises InvalidValue. Source: R-21
    """
    if not isinstance(node, Items):
        raise InvalidValue(node.line, "a list of entity identifiers is expected here: [209900042K]")
    found: dict[str, tuple[int, dict[str, object]]] = {}
    for item in node.nodes:
        entity_id, fields = _membership(item)
        if entity_id in found:
            raise InvalidValue(item.line, f"{quote_value(entity_id)} occurs twice in the list")
        found[entity_id] = (item.line, fields)
    return found


def _membership(node: Node) -> tuple[str, dict[str, object]]:
    if isinstance(node, Scalar):
        return str(values.ENTITY_ID(node)), {}
    nodes = {key.text: value for key, value in node.entries} if isinstance(node, Pairs) else {}
    if "entity" not in nodes or not nodes.keys() <= {"entity", *LISTED_MEMBERSHIP}:
        raise InvalidValue(
            node.line,
            "write a membership as the entity's identifier or as {entity: …, enabled: false}; it can have "
            f"{', '.join(LISTED_MEMBERSHIP)}",
        )
    fields = {}
    for name, key in LISTED_MEMBERSHIP.items():
        if name in nodes:
            try:
                fields[key.name] = key.value(nodes[name])
            except InvalidValue as error:
                raise InvalidValue(error.line, f"{name}: {error.reason}") from None
    return str(values.ENTITY_ID(nodes["entity"])), fields


LISTED_MEMBERSHIP: Final = {name: key for name, key in documented_fields(Membership).items() if not key.identifies}
"""the keys of a membership below its user, beside the entity"""


class DocumentSection(msgspec.Struct, frozen=True, kw_only=True):
    """A section of the file.

    `identity` names a row's members of identity. A keyed section has one, outside its keys.
    """

    kind: Kind
    keys: dict[str, Field]
    identity: tuple[str, ...]
    identifier: Reader | None = None
    """how the key of an entry is read; None for a list of rows"""
    former: dict[str, str] = msgspec.field(default_factory=dict)
    """former name of a key, which is still read → its name"""


def _mapping(kind: Kind, record: type[msgspec.Struct], name: str, **further: Field) -> DocumentSection:
    """A section of entries with a key of their own, `name`."""
    declared = fields_of(record)[name]
    keys = {key: each for key, each in documented_fields(record).items() if each.name != name}
    former = {each.former: key for key, each in keys.items() if each.former}
    return DocumentSection(
        kind=kind, identity=(name,), identifier=declared.read, former=former, keys={**keys, **further}
    )


def _rows(kind: Kind, record: type[msgspec.Struct]) -> DocumentSection:
    return DocumentSection(kind=kind, identity=key_fields(record), keys=documented_fields(record))


SECTIONS: Final[dict[str, DocumentSection]] = {
    "entities": _mapping("entity", Entity, "entity_id"),
    "services": _mapping("service", Service, "service_id"),
    "users": _mapping(
        "user", User, "user_name",
        password=Field(
            name="password", read=values.password, default_doc="none",
            doc="12 to 128 characters; only in developer mode or with `--development`",
        ),
        password_hash=Field(
            name="password_hash", read=values.password_hash, default_doc="none",
            doc="argon2id hash, `$argon2id$v=19$…`, of at least 19 MiB and 2 passes or an "
            "[equivalent](decisions/0031-the-cost-of-a-password.md), such as Keycloak's",
        ),
        totp_secret=Field(
            name="totp_secret", read=values.totp_secret, default_doc="none", doc="base32, at least 160 bits"
        ),
        memberships=Field(
            name="memberships", read=memberships, default_doc="none",
            doc="list of entity identifiers, or of mappings with `entity` and, optionally, "
            f"{', '.join(f'`{name}`' for name in LISTED_MEMBERSHIP)}: `{{entity: …, enabled: false}}`",
        ),
        test=Field(
            name=TEST, read=yes_or_no, default_doc="`false`",
            doc="`true`: the demo lets this person [sign in at once](relying-parties.md#sign-in-at-once-and-from-ci); "
            "only in the demo's own file, or with `--development`; not stored",
        ),
    ),
    "administrators": _rows("administrator", Administrator),
    "operators": _rows("operator", Operator),
    "assignments": _rows("assignment", Assignment),
    "third_party.grants": _rows("grant", ThirdPartyGrant),
    "third_party.assignments": _rows("third-party row", ThirdPartyAssignment),
    "clients": _mapping("client", Client, "client_id"),
}  # fmt: skip

SECTION_OF: Final[Mapping[str, str]] = {section.kind: name for name, section in SECTIONS.items()}
"""kind → the section that has its records"""


def read_api_client_members(client_id: str, members: Mapping[str, object]) -> tuple[dict[str, object], list[str]]:
    """The members of a record, and a sentence for every fault.

    They are read from texts and lists of texts; None stands for a member that is not given. Source: D59, docs/directory.md
    """
    found: dict[str, object] = {}
    reasons = []
    try:
        CLIENT_ID(_api_member_node(client_id))
    except InvalidValue as error:
        reasons.append(error.reason)
    for name, given in members.items():
        key = API_CLIENT_MEMBERS.get(name)
        if given is None:
            continue
        if key is None:
            reasons.append(
                f"{name}: a client of the API does not have this; its members are {', '.join(API_CLIENT_MEMBERS)} and its entity"
            )
            continue
        try:
            found[name] = key.value(_api_member_node(given))
        except InvalidValue as error:
            reasons.append(f"{name}: {error.reason}")
    return found, reasons


def _api_member_node(given: object) -> Node:
    if isinstance(given, list | tuple):
        return Items(0, tuple(map(_api_member_node, given)))
    return Scalar(0, str(given), plain=False)


MOST_PROBLEMS: Final = 1000
"""of one file, after which the rest of it is not read"""
_PARTS: Final = frozenset(name.removeprefix("third_party.") for name in SECTIONS if name.startswith("third_party."))
_TOP: Final = frozenset(name.split(".")[0] for name in SECTIONS)
_WITH_REF: Final = frozenset(section.kind for section in SECTIONS.values() if "ref" in section.identity)


Key: TypeAlias = tuple[str, ...]
NAMES_USERS: Final[tuple[Kind, ...]] = (
    "credentials", "membership", "administrator", "operator", "assignment", "third-party row",
)  # fmt: skip
"""kinds whose keys begin with a user"""


class DocumentEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A file's entry for one record: only the members it names.

    Users are in keys by user name.
    """

    kind: Kind
    key: tuple[str, ...]
    line: int
    fields: dict[str, object]
    lines: dict[str, int]
    """member → the line in which the file names it"""

    def line_of(self, member: str) -> int:
        """The line of a member in the file, or the entry's own."""
        return self.lines.get(member, self.line)


class DirectoryDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A directory file.

    `complete` are the kinds whose section it has, which `--prune` may thin out.
    """

    file: str
    entries: dict[Kind, dict[tuple[str, ...], DocumentEntry]]
    complete: frozenset[Kind]
    listed_members: frozenset[str]
    """user names whose memberships the file lists"""
    remarks: tuple[FileProblem, ...] = ()
    """deprecated but valid input"""

    def entries_of(self, kind: Kind) -> dict[tuple[str, ...], DocumentEntry]:
        return self.entries.get(kind, {})


class Current(msgspec.Struct, frozen=True, kw_only=True):
    """Records that were read, by kind and key.

    Kinds that do not matter may be missing.
    """

    records: dict[Kind, dict[Key, KeyedRecord]]

    def records_of(self, kind: Kind) -> dict[Key, KeyedRecord]:
        return self.records.get(kind, {})


def parse(
    content: bytes,
    file: str,
    *,
    plain_passwords: bool = False,
    most_nodes: int | None = None,
    typed: bool = False,
) -> DirectoryDocument:
    """Read a directory file.

    `file` names it in errors. `plain_passwords` allows the key `password`, for development only; `most_nodes` bounds
    what is built; `typed` is for what a person typed, of which no character is removed. Raises DirectoryError with
    every problem found, for any content. D51, D74, R-14.
    """
    # Most commands read no file, and start sooner without YAML.
    from corpid.rules.directory.yaml_file import read_nodes  # noqa: PLC0415

    return from_nodes(read_nodes(content, file, most_nodes), file, plain_passwords=plain_passwords, typed=typed)


def from_nodes(
    root: Node, file: str, problems: Sequence[FileProblem] = (), *, plain_passwords: bool = False, typed: bool = False
) -> DirectoryDocument:
    """Read the nodes of a file.

    `problems` were found before, and are reported together. Raises DirectoryError with every problem, of which it lists
    1,000 at most. D51, R-14.
    """
    reading = _DocumentReader(plain_passwords, typed=typed)
    reading.problems += problems
    with suppress(_TooMany):
        reading.read(root)
    if reading.problems:
        raise DirectoryError(file, reading.problems)
    users = reading.entries["user"].values()
    return DirectoryDocument(
        file=file,
        entries=reading.entries,
        complete=frozenset(reading.complete),
        listed_members=frozenset(entry.key[0] for entry in users if "memberships" in entry.lines),
        remarks=tuple(reading.remarks),
    )


class _TooMany(Exception):
    """There are as many problems as are listed."""


class _DocumentReader:
    def __init__(self, plain_passwords: bool, *, typed: bool) -> None:
        self.plain_passwords = plain_passwords
        self.typed = typed
        self.problems: list[FileProblem] = []
        self.remarks: list[FileProblem] = []
        self.complete: set[Kind] = set()
        self.entries: dict[Kind, dict[tuple[str, ...], DocumentEntry]] = {kind: {} for kind in KINDS}

    def read(self, root: Node) -> None:
        for name, node in self._sections(root):
            section = SECTIONS[name]
            self.complete.add(section.kind)
            read = section.identifier
            entries = self._keyed(section, read, node) if read else self._rows(section, node)
            for entry in entries:
                self._add(entry)

    def _sections(self, root: Node) -> Iterator[tuple[str, Node]]:
        for key, node in self._pairs(root, "a directory file is a mapping of sections"):
            if key.text == "third_party":
                yield from self._parts(node)
            elif key.text in SECTIONS:
                yield key.text, node
            else:
                self._report(key.line, f"{quote_value(key.text)} is not a section{suggestion(key.text, _TOP)}")

    def _parts(self, node: Node) -> Iterator[tuple[str, Node]]:
        for key, part in self._pairs(node, "third_party has the keys grants and assignments"):
            if key.text in _PARTS:
                yield f"third_party.{key.text}", part
            else:
                self._report(key.line, unknown_field(key.text, _PARTS, "third_party"))

    def _pairs(self, node: Node, expected: str) -> tuple[tuple[Scalar, Node], ...]:
        if isinstance(node, Pairs):
            return node.entries
        empty = isinstance(node, Scalar) and not node.text
        self._report(node.line, f"{expected}: this one is empty, omit it" if empty else expected)
        return ()

    def _keyed(self, section: DocumentSection, identifier: Reader, node: Node) -> Iterator[DocumentEntry]:
        expected = f"a mapping is expected here: one key for each {section.kind}"
        for key, value in self._pairs(node, expected):
            try:
                key_text = str(identifier(key if self.typed else _node_without_marks(key)))
            except InvalidValue as error:
                self._report(error.line, error.reason)
                continue
            members = self._members(section, value, f"{section.kind} {key.text}")
            if members is not None:
                yield DocumentEntry(
                    kind=section.kind, key=(key_text,), line=key.line, fields=members[0], lines=members[1]
                )

    def _rows(self, section: DocumentSection, node: Node) -> Iterator[DocumentEntry]:
        if not isinstance(node, Items):
            self._report(node.line, "a list of rows is expected here, each beginning with -")
            return
        for item in node.nodes:
            before = len(self.problems)
            members = self._members(section, item, f"this {section.kind}")
            if members is None or len(self.problems) > before:
                continue
            fields, lines = members
            missing = [key for key, rule in section.keys.items() if rule.needed and rule.name not in fields]
            if missing:
                self._report(item.line, f"this {section.kind} lacks {', '.join(missing)}")
                continue
            key = tuple(str(fields.pop(member, "")) for member in section.identity)
            yield DocumentEntry(kind=section.kind, key=key, line=item.line, fields=fields, lines=lines)

    def _members(
        self, section: DocumentSection, node: Node, described: str
    ) -> tuple[dict[str, object], dict[str, int]] | None:
        if not isinstance(node, Pairs):
            self._report(node.line, f"{described} needs a mapping of its keys")
            return None
        fields: dict[str, object] = {}
        lines: dict[str, int] = {}
        for key, value in node.entries:
            rule = section.keys.get(self._name(section, key))
            if rule is None:
                self._report(key.line, unknown_field(key.text, section.keys, NOUNS[section.kind]))
                continue
            if rule.name in lines:
                self._report(key.line, f"{key.text}: line {lines[rule.name]} already has it, under its other name")
            lines[rule.name] = key.line
            try:
                is_exact = self.typed or rule.name in OWN_FACTORS
                fields[rule.name] = rule.value(value if is_exact else _node_without_marks(value))
            except InvalidValue as error:
                self._report(error.line, f"{key.text}: {error.reason}")
        return fields, lines

    def _name(self, section: DocumentSection, key: Scalar) -> str:
        """The current name of a key; a former name gets a note."""
        name = section.former.get(key.text, key.text)
        if name != key.text:
            self.remarks.append(FileProblem(key.line, f"{key.text} is deprecated: use {name}"))
        return name

    def _add(self, entry: DocumentEntry) -> None:
        if entry.kind == "user":
            entry = self._split_user(entry)
        if entry.kind == "client":
            entry = self._one_key_source(entry)
        held = self.entries[entry.kind]
        if entry.key in held:
            first = held[entry.key].line
            other = "; give two such rows different refs" if entry.kind in _WITH_REF else ""
            self._report(entry.line, f"the same {entry.kind} is already in line {first}{other}")
            return
        held[entry.key] = entry

    def _split_user(self, entry: DocumentEntry) -> DocumentEntry:
        """A user's factors and memberships are records of their own."""
        factors = {member: value for member, value in entry.fields.items() if member in OWN_FACTORS}
        line = entry.line_of("password")
        if "password" in factors and not self.plain_passwords:
            reason = "a plain password is for development only: use password_hash, or apply with --development"
            self._report(line, reason)
        if {"password", "password_hash"} <= factors.keys():
            self._report(line, "write either password or password_hash, not both")
        if entry.fields.get(TEST) and not self.plain_passwords:
            self._report(entry.line_of(TEST), "a test person is for development only: apply with --development")
        if factors:
            self._add(
                DocumentEntry(kind="credentials", key=entry.key, line=entry.line, fields=factors, lines=entry.lines)
            )
        listed: dict[str, tuple[int, dict[str, object]]] = entry.fields.get("memberships", {})  # type: ignore[assignment]
        for entity_id, (line, fields) in listed.items():
            self._add(DocumentEntry(kind="membership", key=(*entry.key, entity_id), line=line, fields=fields, lines={}))
        own = {m: value for m, value in entry.fields.items() if m not in OWN_FACTORS | {"memberships", TEST}}
        return msgspec.structs.replace(entry, fields=own)

    def _one_key_source(self, entry: DocumentEntry) -> DocumentEntry:
        if "jwks" in entry.fields and "jwks_uri" in entry.fields:
            self._report(entry.line_of("jwks_uri"), "write either jwks or jwks_uri, not both")
        other = {"jwks": "jwks_uri", "jwks_uri": "jwks"}
        emptied = {other[member]: None for member in entry.fields if member in other}
        return msgspec.structs.replace(entry, fields={**emptied, **entry.fields})

    def _report(self, line: int, reason: str) -> None:
        self.problems.append(FileProblem(line, reason))
        if len(self.problems) >= MOST_PROBLEMS:
            raise _TooMany


def _node_without_marks(node: Node) -> Node:
    """A node whose texts are `without_marks` (D74)."""
    if isinstance(node, Scalar):
        text = without_marks(node.text)
        return node if text == node.text else msgspec.structs.replace(node, text=text)
    if isinstance(node, Items):
        return Items(node.line, tuple(map(_node_without_marks, node.nodes)))
    entries = ((Scalar(k.line, without_marks(k.text), k.plain), _node_without_marks(v)) for k, v in node.entries)
    return Pairs(node.line, tuple(entries))


def entry_text(
    section_name: str,
    record: KeyedRecord,
    user_names: Mapping[str, str],
    memberships: Sequence[Membership] = (),
) -> str:
    """A record as an entry of its section, indented by two spaces.

    Without factors. `user_names` is user identifier → user name, for the kinds of rows that name users; `memberships`
    are those of a user. Source: D51, docs/directory.md
    """
    section = SECTIONS[section_name]
    members = {
        name: _value(key, getattr(record, key.name), user_names)
        for name, key in section.keys.items()
        if key.name in record.__struct_fields__ and not (key.moot and key.moot(record))
    }
    if section.identifier is None:
        unsaid = {name for name, key in section.keys.items() if key.added and getattr(record, key.name) == key.default}
        stated = {name: value for name, value in members.items() if value != "" and name not in unsaid}
        return indent("- " + _yaml(stated, flow=True), "  " * (section_name.count(".") + 1))
    if "memberships" in section.keys:
        members["memberships"] = [
            {
                "entity": held.entity_id,
                **{
                    name: getattr(held, key.name)
                    for name, key in LISTED_MEMBERSHIP.items()
                    if getattr(held, key.name) != ""
                },
            }
            for held in memberships
        ]
    stated = {name: value for name, value in members.items() if value is not None}
    return indent(_yaml({getattr(record, section.identity[0]): stated}, flow=None), "  ")


def _value(key: Field, value: object, user_names: Mapping[str, str]) -> object:
    if key.key == "user":
        return user_names[str(value)]
    if key.clearable:
        return NOTHING if value is None else value
    return key.written(value)


def _yaml(value: object, *, flow: bool | None) -> str:
    from corpid.rules.directory.yaml_file import dump_yaml  # noqa: PLC0415 - as `parse`

    return dump_yaml(value, flow=flow)


def one_entry(section_name: str, key: str | None, members: Mapping[str, object]) -> bytes:
    """A directory file of a single entry.

    For the commands that write one record. `key` is None for a row. Source: docs/directory.md
    """
    stated = {name: value for name, value in members.items() if value is not None}
    return _yaml({section_name: [stated] if key is None else {key: stated}}, flow=None).encode()


def named_users(document: DirectoryDocument) -> tuple[set[str], set[str]]:
    """User names and identifiers of everybody whom a document names. Source: R-12.4, R-14"""
    names = {key[0] for kind in ("user", *NAMES_USERS) for key in document.entries_of(kind)}
    stated = (entry.fields.get("user_id") for entry in document.entries_of("user").values())
    return names, {str(user_id) for user_id in stated if user_id is not None}


def new_users(document: DirectoryDocument, by_name: Mapping[str, User]) -> list[str]:
    """The user names that need a fresh identifier.

    They are not in the directory, and the file names no identifier. Source: R-12.4
    """
    return [
        key[0]
        for key, entry in document.entries_of("user").items()
        if key[0] not in by_name and "user_id" not in entry.fields
    ]


def user_ids(
    document: DirectoryDocument, by_name: Mapping[str, User], by_id: Mapping[str, User], fresh: Mapping[str, str]
) -> dict[str, str]:
    """User name → identifier, for every known user.

    Known to the directory or to the file. `fresh` holds identifiers for the newcomers. An `id` in the file that belongs
    to a user of another name renames that user. Raises DirectoryError if name and identifier contradict each other.
    R-12.4, D51.
    """
    problems: list[FileProblem] = []
    ids = {name: user.user_id for name, user in by_name.items()} | dict(fresh)
    owners: dict[str, str] = {}
    for (name,), entry in document.entries_of("user").items():
        wanted = str(entry.fields.get("user_id", ids.get(name, "")))
        line = entry.line_of("user_id")
        if name in by_name and by_name[name].user_id != wanted:
            problems.append(
                FileProblem(line, f"id: {name} already has the id {by_name[name].user_id}, which never changes")
            )
        if wanted in owners:
            problems.append(FileProblem(line, f"id: {owners[wanted]} has this id too"))
        former = by_id.get(wanted)
        if former is not None and former.user_name != name and (former.user_name,) in document.entries_of("user"):
            problems.append(FileProblem(line, f"id: belongs to {former.user_name}, who is also in this file"))
        owners[wanted] = name
        ids[name] = wanted
    if problems:
        raise DirectoryError(document.file, problems)
    return ids
