"""A parsed directory file: an entry for each record, with its line.

Nothing is decided here about what exists already; `plan` compares a document with the directory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.rules.directory.nodes import DirectoryError, Items, Node, Pairs, Problem, Scalar, quoted, read_nodes
from corpid.rules.directory.sections import KINDS, OWN_FACTORS, SECTIONS, Kind, Section
from corpid.rules.directory.values import Malformed, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid.rules.directory.values import Reader

_PARTS: Final = frozenset(name.removeprefix("third_party.") for name in SECTIONS if name.startswith("third_party."))
_TOP: Final = frozenset(name.split(".")[0] for name in SECTIONS)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
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


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A directory file.

    `complete` are the kinds whose section it has, which `--prune` may thin out.
    """

    file: str
    entries: dict[Kind, dict[tuple[str, ...], Entry]]
    complete: frozenset[Kind]
    listed_members: frozenset[str]
    """user names whose memberships the file lists"""
    remarks: tuple[Problem, ...] = ()
    """what should be written otherwise, and is understood"""

    def of(self, kind: Kind) -> dict[tuple[str, ...], Entry]:
        """The entries of a kind, by key."""
        return self.entries.get(kind, {})


def parse(content: bytes, file: str, *, plain_passwords: bool = False) -> Document:
    """Read a directory file.

    `file` names it in errors. `plain_passwords` allows the key `password`, for development only.
    Raises DirectoryError with every problem found, for any content. D51, R-14.
    """
    root = read_nodes(content, file)
    reading = _Reading(plain_passwords)
    reading.read(root)
    if reading.problems:
        raise DirectoryError(file, reading.problems)
    users = reading.entries["user"].values()
    return Document(
        file=file,
        entries=reading.entries,
        complete=frozenset(reading.complete),
        listed_members=frozenset(entry.key[0] for entry in users if "memberships" in entry.lines),
        remarks=tuple(reading.remarks),
    )


class _Reading:
    def __init__(self, plain_passwords: bool) -> None:
        self.plain_passwords = plain_passwords
        self.problems: list[Problem] = []
        self.remarks: list[Problem] = []
        self.complete: set[Kind] = set()
        self.entries: dict[Kind, dict[tuple[str, ...], Entry]] = {kind: {} for kind in KINDS}

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
                self._report(key.line, f"{quoted(key.text)} is no section{suggestion(key.text, _TOP)}")

    def _parts(self, node: Node) -> Iterator[tuple[str, Node]]:
        for key, part in self._pairs(node, "third_party holds grants and assignments"):
            if key.text in _PARTS:
                yield f"third_party.{key.text}", part
            else:
                self._report(key.line, f"{quoted(key.text)} is no key of third_party{suggestion(key.text, _PARTS)}")

    def _pairs(self, node: Node, expected: str) -> tuple[tuple[Scalar, Node], ...]:
        if isinstance(node, Pairs):
            return node.entries
        empty = isinstance(node, Scalar) and not node.text
        self._report(node.line, f"{expected}: this one is empty, leave it out" if empty else expected)
        return ()

    def _keyed(self, section: Section, identifier: Reader, node: Node) -> Iterator[Entry]:
        expected = f"a mapping is expected here: one key for each {section.kind}"
        for key, value in self._pairs(node, expected):
            try:
                key_text = str(identifier(key))
            except Malformed as error:
                self._report(error.line, error.reason)
                continue
            members = self._members(section, value, f"{section.kind} {key.text}")
            if members is not None:
                yield Entry(kind=section.kind, key=(key_text,), line=key.line, fields=members[0], lines=members[1])

    def _rows(self, section: Section, node: Node) -> Iterator[Entry]:
        if not isinstance(node, Items):
            self._report(node.line, "a list of rows is expected here, each beginning with -")
            return
        for item in node.nodes:
            before = len(self.problems)
            members = self._members(section, item, f"this {section.kind}")
            if members is None or len(self.problems) > before:
                continue
            fields, lines = members
            missing = [key for key, rule in section.keys.items() if rule.needed and rule.member not in fields]
            if missing:
                self._report(item.line, f"this {section.kind} lacks {', '.join(missing)}")
                continue
            key = tuple(str(fields.pop(member, "")) for member in section.identity)
            yield Entry(kind=section.kind, key=key, line=item.line, fields=fields, lines=lines)

    def _members(self, section: Section, node: Node, described: str) -> tuple[dict[str, object], dict[str, int]] | None:
        if not isinstance(node, Pairs):
            self._report(node.line, f"{described} needs a mapping of its keys")
            return None
        fields: dict[str, object] = {}
        lines: dict[str, int] = {}
        for key, value in node.entries:
            rule = section.keys.get(self._name(section, key))
            if rule is None:
                hint = suggestion(key.text, section.keys)
                self._report(key.line, f"{quoted(key.text)} is no key of {described}{hint}")
                continue
            if rule.member in lines:
                self._report(key.line, f"{key.text}: line {lines[rule.member]} says it already, under its other name")
            lines[rule.member] = key.line
            try:
                fields[rule.member] = rule.value(value)
            except Malformed as error:
                self._report(error.line, f"{key.text}: {error.reason}")
        return fields, lines

    def _name(self, section: Section, key: Scalar) -> str:
        """The current name of a key; a former name gets a note."""
        name = section.former.get(key.text, key.text)
        if name != key.text:
            self.remarks.append(Problem(key.line, f"{key.text} is deprecated: its name is {name} now"))
        return name

    def _add(self, entry: Entry) -> None:
        if entry.kind == "user":
            entry = self._split_user(entry)
        if entry.kind == "client":
            entry = self._one_key_source(entry)
        held = self.entries[entry.kind]
        if entry.key in held:
            first = held[entry.key].line
            other = "" if entry.kind in {"user", "membership"} else "; a different ref tells two such rows apart"
            self._report(entry.line, f"the same {entry.kind} stands in line {first} already{other}")
            return
        held[entry.key] = entry

    def _split_user(self, entry: Entry) -> Entry:
        """A user's factors and memberships are records of their own."""
        factors = {member: value for member, value in entry.fields.items() if member in OWN_FACTORS}
        if "password" in factors:
            self._check_plain(entry)
        if factors:
            self._add(Entry(kind="credentials", key=entry.key, line=entry.line, fields=factors, lines=entry.lines))
        listed: dict[str, tuple[int, dict[str, object]]] = entry.fields.get("memberships", {})  # type: ignore[assignment]
        for entity_id, (line, fields) in listed.items():
            self._add(Entry(kind="membership", key=(*entry.key, entity_id), line=line, fields=fields, lines={}))
        own = {m: value for m, value in entry.fields.items() if m not in OWN_FACTORS and m != "memberships"}
        return msgspec.structs.replace(entry, fields=own)

    def _check_plain(self, entry: Entry) -> None:
        line = entry.line_of("password")
        if not self.plain_passwords:
            reason = "a plain password is for development only: use password_hash, or apply with --development"
            self._report(line, reason)
        if "password_hash" in entry.fields:
            self._report(line, "write either password or password_hash, not both")

    def _one_key_source(self, entry: Entry) -> Entry:
        if "jwks" in entry.fields and "jwks_uri" in entry.fields:
            self._report(entry.line_of("jwks_uri"), "write either jwks or jwks_uri, not both")
        other = {"jwks": "jwks_uri", "jwks_uri": "jwks"}
        emptied = {other[member]: None for member in entry.fields if member in other}
        return msgspec.structs.replace(entry, fields={**emptied, **entry.fields})

    def _report(self, line: int, reason: str) -> None:
        self.problems.append(Problem(line, reason))
